"""``holdfast backup`` and ``restore`` as an operator runs them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import holdfast
from tests.cli.command import Command


def test_an_embedded_folder_is_backed_up_and_restored(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def record(folder: Path) -> None:
        async with holdfast.open(folder) as state:
            await state.short_term.set_state("s1", {"step": 1})

    async def found(folder: Path) -> object:
        async with holdfast.open(folder) as state:
            return await state.short_term.get_state("s1")

    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("STORAGE_TYPE", "embedded")
    monkeypatch.setenv("HOLDFAST_DIR", str(tmp_path / "here"))
    asyncio.run(record(tmp_path / "here"))
    done = command("backup", str(tmp_path / "backup"))
    assert done.code == 0, done.err
    refused = command("restore", str(tmp_path / "backup"))
    assert (refused.code, "has data already" in refused.err) == (1, True)
    monkeypatch.setenv("HOLDFAST_DIR", str(tmp_path / "there"))
    assert command("restore", str(tmp_path / "backup")).out.startswith("restored ")
    assert asyncio.run(found(tmp_path / "there")) == {"step": 1}


def test_a_server_is_not_backed_up_by_this_command(
    command: Command, database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("STORAGE_TYPE", raising=False)
    monkeypatch.setenv("DATABASE_URL", database)
    refused = command("backup", str(tmp_path / "backup"))
    assert refused.code == 1
    assert "holdfast export" in refused.err
