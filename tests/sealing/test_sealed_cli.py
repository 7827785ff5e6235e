"""The commands of operators: which keys are in use, and how they are changed."""

from __future__ import annotations

import asyncio
import json

import pytest
from typer.testing import CliRunner

import holdfast
from holdfast import Settings
from holdfast.cli.commands import app
from tests.engines.postgres_database import empty_database, migrated_database

OLD, NEW = "k1:" + "11" * 32, "k2:" + "22" * 32


def test_doctor_shows_the_keys_and_rotate_kek_changes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asyncio.run(_rotate(monkeypatch))


async def _rotate(monkeypatch: pytest.MonkeyPatch) -> None:
    async with empty_database() as url:
        settings = Settings(auto_migrate=True, seal="env:", keys=OLD)
        async with holdfast.open(url, settings=settings) as state:
            await state.short_term.set_state("s1", {"step": 1})
        monkeypatch.delenv("STORAGE_TYPE", raising=False)
        monkeypatch.setenv("DATABASE_URL", url)
        assert "no: but 2 data keys by 'k1'; set HOLDFAST_SEAL" in await _doctor()
        monkeypatch.setenv("HOLDFAST_SEAL", "env:")
        monkeypatch.setenv("HOLDFAST_KEYS", f"{NEW},{OLD}")
        assert "new data keys by 'k2'; 2 data keys by 'k1'" in await _doctor()
        assert await _run("keys", "rotate-kek") == "rewrapped 2 data keys\n"
        assert await _run("keys", "rotate-kek") == "rewrapped 0 data keys\n"
        shown = await _doctor()
        assert "2 data keys by 'k2'" in shown
        assert (
            await _run("keys", "rotate-dek", "--older-than-days", "1") == "replaced 0 data keys\n"
        )
        assert await _run("keys", "rotate-dek") == "replaced 1 data keys\n"
        assert "3 data keys by 'k2'" in await _doctor()
        assert "2222" not in shown
        async with holdfast.open(url, settings=Settings(seal="env:", keys=NEW)) as state:
            assert await state.short_term.get_state("s1") == {"step": 1}


def test_rotate_kek_changes_the_keys_of_every_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(_rotate_all(monkeypatch))


async def _rotate_all(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"tenant {at:03}" for at in range(120)]
    async with migrated_database() as url:
        async with holdfast.open(url, settings=Settings(seal="env:", keys=OLD)) as state:
            for name in names:
                await state.for_tenant(name).boards.create_task_list("c1", ["go"])
        monkeypatch.delenv("STORAGE_TYPE", raising=False)
        monkeypatch.setenv("DATABASE_URL", url)
        monkeypatch.setenv("HOLDFAST_SEAL", "env:")
        monkeypatch.setenv("HOLDFAST_KEYS", f"{NEW},{OLD}")
        found = await asyncio.to_thread(
            CliRunner().invoke, app, ("keys", "rotate-kek", "--all-tenants", "--tenant", "x")
        )
        assert found.exit_code == 2
        assert "--all-tenants" in found.output
        assert await _run("keys", "rotate-kek", "--tenant", names[7]) == "rewrapped 1 data keys\n"
        assert await _run("keys", "rotate-kek", "--all-tenants") == "rewrapped 119 data keys\n"
        assert await _run("keys", "rotate-kek", "--all-tenants") == "rewrapped 0 data keys\n"
        async with holdfast.open(url, settings=Settings(seal="env:", keys=NEW)) as state:
            for name in names:
                board = await state.for_tenant(name).boards.get_by_conversation("c1")
                assert board is not None
                assert board.tasks[0].title == "go"


async def _doctor() -> str:
    [found] = json.loads(await _run("doctor", "--json"))
    return str(found["sealed"])


async def _run(*args: str) -> str:
    # The command has an event loop of its own.
    found = await asyncio.to_thread(CliRunner().invoke, app, args)
    assert found.exit_code == 0, found.output
    return found.stdout
