"""``holdfast contexts`` as an operator uses it."""

from __future__ import annotations

import asyncio
import io
import sys

import pytest

import holdfast
from holdfast import App, TaskContext
from holdfast.content import DocumentBlock
from holdfast.runtime.offload import LARGE_BYTES
from tests.cli.command import Command

app = App("painter")


@app.handler
async def paint(task: TaskContext) -> str:
    """Make a large file."""
    await task.artifact("picture.png", b"x" * LARGE_BYTES, media_type="image/png")
    return "painted"


def _submit(command: Command, text: str, context: str, owner: str = "") -> str:
    arguments = ("painter", text, "--context", context, "--owner", owner, "--json")
    found: str = command("tasks", "submit", *arguments).json["id"]
    return found


def test_contexts_are_listed_and_shown_with_all_that_was_said(
    command: Command, tenant: str
) -> None:
    assert tenant
    tasks = [_submit(command, text, "c1", "ana") for text in ("a boat", "a harbour")]
    _submit(command, "a cat", "c2")
    listed = command("contexts", "list", "--json").json["contexts"]
    assert [(one["id"], one["owner"], one["tasks"]) for one in listed] == [
        ("c2", "", 1),
        ("c1", "ana", 2),
    ]
    page = command("contexts", "list", "--limit", "1", "--json").json
    rest = command("contexts", "list", "--cursor", page["next_cursor"], "--json").json
    assert [one["id"] for one in rest["contexts"]] == ["c1"]
    assert [
        one["id"]
        for one in command("contexts", "list", "--owner", "ana", "--json").json["contexts"]
    ] == ["c1"]
    shown = command("contexts", "show", "c1", "--json").json
    assert [one["text"] for one in shown["messages"]] == ["a boat", "a harbour"]
    assert {one["id"] for one in shown["tasks"]} == set(tasks)
    table = command("contexts", "show", "c1", "--last", "1").out
    assert all(one in table for one in (*tasks, "owner ana", "a harbour"))
    assert "a boat" not in table
    assert "c1" in command("contexts", "list").out


def test_clear_removes_a_context_with_the_files_of_its_tasks(
    command: Command, database: str, tenant: str
) -> None:
    task = _submit(command, "a boat", "c1", "ana")

    async def work() -> str:
        async with holdfast.open(database, tenant=tenant) as state:
            await app.run_until_idle(state)
            done = await state.tasks.get(task, owner=None)
            assert done is not None
            [part] = done.artifacts[0].parts
            assert isinstance(part, DocumentBlock)
            return part.blob_ref or ""

    ref = asyncio.run(work())

    async def pinned() -> bool:
        async with holdfast.open(database, tenant=tenant) as state:
            return (await state.blobs.stat(ref)).pinned

    assert asyncio.run(pinned())
    reply = command("contexts", "clear", "c1", "--yes", "--json").json
    assert reply == {"context": "c1", "tasks_removed": 1}
    assert not asyncio.run(pinned())
    assert command("contexts", "show", "c1").code == 1
    assert command("tasks", "show", task).code == 1
    again = command("contexts", "clear", "c1", "--yes", "--json")
    assert again.json["tasks_removed"] == 0


def test_clear_asks_a_person_and_refuses_a_program_that_did_not_say_yes(
    command: Command, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tenant
    _submit(command, "a boat", "c1")
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    asked = command("contexts", "clear", "c1")
    assert asked.code == 1
    assert "Remove the context 'c1'" in asked.out + asked.err
    refused = command("contexts", "clear", "c1", "--json")
    assert (refused.code, "--yes" in refused.err) == (1, True)
    assert command("contexts", "show", "c1", "--json").json["id"] == "c1"


def test_an_id_that_two_owners_use_needs_the_owner(command: Command, tenant: str) -> None:
    assert tenant
    for owner in ("ana", "bob"):
        _submit(command, f"for {owner}", "c1", owner)
    unclear = command("contexts", "show", "c1")
    assert (unclear.code, "--owner" in unclear.err) == (1, True)
    shown = command("contexts", "show", "c1", "--owner", "bob", "--json").json
    assert [one["text"] for one in shown["messages"]] == ["for bob"]
    command("contexts", "clear", "c1", "--owner", "ana", "--yes")
    assert command("contexts", "show", "c1", "--json").json["owner"] == "bob"


def test_every_command_teaches_in_its_help(command: Command) -> None:
    for name in ("list", "show", "clear"):
        assert f"holdfast contexts {name}" in command("contexts", name, "--help").out


def test_clearing_nothing_says_so(command: Command, tenant: str) -> None:
    assert tenant
    reply = command("contexts", "clear", "none", "--yes")
    assert (reply.code, "there was no context 'none'" in reply.out) == (0, True)
