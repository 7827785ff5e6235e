"""``holdfast embed`` as an operator runs it."""

from __future__ import annotations

import asyncio

import pytest

import holdfast
from holdfast import Settings
from holdfast.wiring.embedding import Embedding
from tests.cli.command import Command


def _record(database: str, tenant: str, *notes: str) -> None:
    async def work() -> None:
        async with holdfast.open(database, tenant=tenant, background=False) as state:
            memory = state.memory("writer/ana", session_id="s1")
            await memory.record_many([("note", {"note": note}) for note in notes])

    asyncio.run(work())


def test_a_log_is_embedded_and_the_status_says_so(
    command: Command, database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _record(database, tenant, "low tide", "full moon")
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "hash")
    before = command("embed", "status")
    assert before.code == 1
    assert "holdfast embed run" in before.out
    ran = command("embed", "run", "--json").json
    assert (ran["model"], ran["adopted"], ran["embedded"]) == ("hash-64", True, 2)
    assert (ran["waiting"], ran["refused"], ran["problem"]) == (0, 0, "")
    after = command("embed", "status", "--json").json
    assert (after["embedded"], after["behind"], after["dimension"]) == (2, False, 64)
    again = command("embed", "run", "--retry")
    assert (again.code, "embedded 0 events by hash-64" in again.out) == (0, True)


def test_a_change_of_model_is_shown_and_done(
    command: Command, database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _record(database, tenant, "low tide")
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "hash")
    command("embed", "run")
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    shown = command("embed", "status")
    assert shown.code == 1
    assert "wordllama-256" in shown.out
    assert "hash-64" in shown.out
    assert command("embed", "run", "--json").json["embedded"] == 1
    assert command("embed", "status").code == 0


def test_without_an_embedder_it_says_what_to_set(command: Command, tenant: str) -> None:
    assert tenant
    ran = command("embed", "run")
    assert ran.code == 1
    assert "HOLDFAST_EMBEDDER=static" in ran.err
    assert command("embed", "status").code == 0


def test_an_embedder_that_is_away_is_one_line_and_nothing_is_lost(
    command: Command, database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _record(database, tenant, "low tide")
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "openai:http://127.0.0.1:1?model=m&dimension=3")
    ran = command("embed", "run")
    assert ran.code == 1
    assert "run it again to go on" in " ".join(ran.err.split())
    assert "waiting" in command("embed", "status").out
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "hash")
    assert command("embed", "run", "--json").json["embedded"] == 1


def _take(database: str, tenant: str, seconds: float) -> None:
    """Another worker takes everything, and dies."""

    async def work() -> None:
        async with Embedding.open(Settings(database_url=database), tenant) as embedding:
            await embedding.queue.adopt("hash-64", 64)
            await embedding.queue.catch_up()
            assert await embedding.queue.take(100, seconds=seconds)

    asyncio.run(work())


def test_what_others_have_taken_is_told_or_waited_for(
    command: Command, database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _record(database, tenant, "low tide", "full moon")
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "hash")
    _take(database, tenant, 3600)
    ran = command("embed", "run", "--wait-seconds", "0")
    assert ran.code == 1
    assert "2 events are left, which other workers have taken" in " ".join(ran.err.split())


def test_what_a_dead_worker_had_taken_is_embedded_when_its_time_is_over(
    command: Command, database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _record(database, tenant, "low tide", "full moon")
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "hash")
    _take(database, tenant, 3)
    ran = command("embed", "run", "--json")
    assert (ran.json["embedded"], ran.json["waiting"]) == (2, 0)
