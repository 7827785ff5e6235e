"""``holdfast tasks`` as an operator uses it."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import holdfast
from holdfast import AgentId, App, TaskContext, TaskRecord, TaskState
from holdfast.cli import tasks
from holdfast.cli.timeline import draw_head
from holdfast.values.tasks.records import Artifact
from holdfast.wiring.masking import mask_url
from tests.cli.command import Command, start, wait_until

app = App("researcher")


@app.handler
async def research(task: TaskContext) -> str:
    """Fetch, draft, ask, and tell."""
    if task.message.text == "break":
        raise ValueError("no such tide")
    if task.message.text == "break at length":
        raise holdfast.errors.ConflictError("step", "s1", "long " * 30 + "and here is what to do")
    await task.step("fetch", lambda: ["page 1", "page 2"])
    for at in range(3):
        await task.artifact("draft.md", f"line {at}\n", append=True, last=at == 2)
    answer = await task.ask("Which chapter matters?")
    return f"Done with {answer.text}"


@app.handler(agent="careful", max_attempts=1)
async def careful(_task: TaskContext) -> None:
    """Try once."""
    raise ValueError("no such tide")


def _work(database: str, tenant: str) -> None:
    async def work() -> None:
        async with holdfast.open(database, tenant=tenant) as state:
            await app.run_until_idle(state)

    asyncio.run(work())


def _submitted(command: Command, *more: str) -> str:
    found: str = command("tasks", "submit", "researcher", "Tides?", "--json", *more).json["id"]
    return found


def _timeline(shown: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [one["body"] for one in shown["timeline"] if one["kind"] == kind]


def test_a_task_goes_from_submit_to_its_answer(
    command: Command, database: str, tenant: str
) -> None:
    reply = command("tasks", "submit", "researcher", "Tides?", "--owner", "ana")
    assert (reply.code, "holdfast tasks watch" in reply.err) == (0, True), reply.err
    [task] = command("tasks", "list", "--json").json["tasks"]
    assert reply.out == f"{task['id']}\n"
    assert (task["state"], task["owner"]) == ("submitted", "ana")
    _work(database, tenant)
    waiting = command("tasks", "show", task["id"])
    for word in ("input-required", "fetch", "page 1", "draft.md", "3 chunks", "attempt 1"):
        assert word in waiting.out
    assert f"holdfast tasks answer {task['id']} TEXT" in waiting.out
    assert command("tasks", "answer", task["id"], "chapter 2").code == 0
    _work(database, tenant)
    done = command("tasks", "show", task["id"], "--json").json
    assert done["state"] == "completed"
    assert [one["text"] for one in done["messages"]] == [
        "Tides?",
        "Which chapter matters?",
        "chapter 2",
        "Done with chapter 2",
    ]
    assert [one["key"] for one in _timeline(done, "step")] == ["step:fetch:1", "ask:ask:1"]
    assert "".join(part["text"] for part in done["artifacts"][0]["parts"]) == (
        "line 0\nline 1\nline 2\n"
    )


def test_a_task_is_shown_as_it_was_at_any_event(
    command: Command, database: str, tenant: str
) -> None:
    task = _submitted(command)
    _work(database, tenant)
    timeline = command("tasks", "show", task, "--json").json["timeline"]
    second_chunk = [one["seq"] for one in timeline if one["kind"] == "artifact"][1]
    then = command("tasks", "replay", task, "--at", str(second_chunk), "--json").json
    assert then["state"] == "working"
    assert "".join(part["text"] for part in then["artifacts"][0]["parts"]) == "line 0\nline 1\n"
    reply = command("tasks", "replay", task, "--at", str(second_chunk)).out
    assert ("line 1" in reply, "line 2" in reply) == (True, False)
    first = command("tasks", "replay", task, "--at", "1", "--json").json
    assert (first["state"], first["messages"]) == ("submitted", [])


def test_list_filters_and_goes_on_from_a_cursor(command: Command, tenant: str) -> None:
    assert tenant
    tasks = [_submitted(command, "--owner", owner) for owner in ("ana", "ana", "bob")]
    command("tasks", "cancel", tasks[0])
    first = command("tasks", "list", "--limit", "2", "--json").json
    rest = command("tasks", "list", "--cursor", first["next_cursor"], "--json").json
    assert first["total"] == 3
    assert {one["id"] for one in first["tasks"] + rest["tasks"]} == set(tasks)
    assert "--cursor" in command("tasks", "list", "--limit", "2").out

    def ids(*options: str) -> list[str]:
        return [one["id"] for one in command("tasks", "list", *options, "--json").json["tasks"]]

    assert ids("--owner", "bob") == [tasks[2]]
    assert ids("--state", "canceled") == [tasks[0]]
    assert set(ids("--state", "canceled", "--state", "submitted")) == set(tasks)
    assert ids("--agent", "somebody-else") == []
    assert ids("--since", "2100-01-01") == []
    assert ids("--tenant", "nobody") == []
    table = command("tasks", "list").out
    ends = [one[-8:] for one in tasks]
    assert all(one in table for one in (*ends, "canceled", "ana", "Tides?", "3 of 3"))


def test_a_task_is_paused_resumed_canceled_and_retried(command: Command, tenant: str) -> None:
    assert tenant
    task = _submitted(command)
    for act, state in (("pause", "paused"), ("resume", "submitted"), ("cancel", "canceled")):
        assert command("tasks", act, task, "--note", "why not", "--json").json["state"] == state
    assert "why not" in command("tasks", "show", task).out
    again = command("tasks", "retry", task, "--key", "r1", "--json").json
    assert (again["retry_of"], again["state"]) == (task, "submitted")
    assert command("tasks", "retry", task, "--key", "r1", "--json").json["id"] == again["id"]
    refused = command("tasks", "pause", task)
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert "cannot go from 'canceled' to 'paused'" in refused.err


def test_a_cancel_of_a_task_at_work_says_that_it_is_requested(
    command: Command, database: str, tenant: str
) -> None:
    task = _submitted(command)

    async def claim() -> None:
        async with holdfast.open(database, tenant=tenant) as state:
            assert await state.tasks.claim("w1")

    asyncio.run(claim())
    assert "cancel requested" in command("tasks", "cancel", task).out
    assert "w1 until" in command("tasks", "show", task).out


def test_the_reason_of_a_failure_is_shown_and_not_its_whole_traceback(
    command: Command, database: str, tenant: str
) -> None:
    command("tasks", "submit", "researcher", "break", "--max-attempts", "1")
    _work(database, tenant)
    [task] = command("tasks", "list", "--state", "failed", "--json").json["tasks"]
    shown = command("tasks", "show", task["id"])
    assert "ValueError: no such tide" in shown.out
    assert "Traceback" not in shown.out
    assert "Traceback" in command("tasks", "show", task["id"], "--json").json["note"]


def test_a_long_reason_is_shown_to_its_end(command: Command, database: str, tenant: str) -> None:
    command("tasks", "submit", "researcher", "break at length", "--max-attempts", "1")
    _work(database, tenant)
    [task] = command("tasks", "list", "--state", "failed", "--json").json["tasks"]
    shown = " ".join(command("tasks", "show", task["id"]).out.split())
    assert "ConflictError: long" in shown
    assert "and here is what to do" in shown
    assert "holdfast.values" not in shown


@pytest.mark.parametrize(
    ("state", "reply"), [(TaskState.WORKING, True), (TaskState.COMPLETED, False)]
)
def test_only_a_task_that_goes_on_may_have_a_last_chunk_to_come(
    state: TaskState, *, reply: bool
) -> None:
    now = datetime.now(UTC)
    made = Artifact("draft.md", "t1", [], updated_at=now)
    task = TaskRecord("t1", "c1", AgentId.parse("writer"), state, now, now, artifacts=[made])
    screen = Console(width=100, file=io.StringIO(), record=True)
    screen.print(draw_head(task))
    assert ("no last chunk yet" in screen.export_text()) is reply


def test_a_handlers_number_of_attempts_holds_for_what_an_operator_submits(
    command: Command, database: str, tenant: str
) -> None:
    command("tasks", "submit", "careful", "break")
    _work(database, tenant)
    [task] = command("tasks", "list", "--state", "failed", "--json").json["tasks"]
    assert (task["agent"], task["fence"]) == ("careful", 1)


def test_an_id_may_be_abbreviated_while_it_is_unambiguous(command: Command, tenant: str) -> None:
    assert tenant
    tasks = [_submitted(command) for _ in range(2)]
    assert command("tasks", "show", tasks[1][-12:], "--json").json["id"] == tasks[1]
    common = command("tasks", "show", tasks[0][:4])
    assert common.code == 1
    assert all(one in common.err for one in tasks)
    assert "the end of the id" in common.err
    for unknown in ("no-such-task", tasks[0][-3:]):
        missing = command("tasks", "cancel", unknown)
        assert (missing.code, "holdfast tasks list" in missing.err) == (1, True)


def test_what_a_handler_or_a_client_wrote_is_no_markup(command: Command, tenant: str) -> None:
    assert tenant
    odd = "[bold]not bold[/] [/nothing] 🌊"
    task = command("tasks", "submit", "researcher", odd, "--owner", "[red]", "--json").json["id"]
    for shown in (
        command("tasks", "show", task),
        command("tasks", "list"),
        command("tasks", "replay", task, "--at", "2"),
        command("tasks", "watch", command("tasks", "cancel", task, "--json").json["id"]),
    ):
        assert odd in shown.out, shown.err


def test_watch_follows_a_task_until_it_has_ended(
    command: Command, database: str, tenant: str, tmp_path: Path
) -> None:
    task = _submitted(command)
    environment = {"DATABASE_URL": database, "HOLDFAST_TENANT": tenant}
    watching = start(tmp_path, "tasks", "watch", task[-10:], "--json", **environment)

    def seen() -> list[dict[str, Any]]:
        return [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]

    try:
        wait_until(lambda: bool(seen()), "the first event", watching, tmp_path / "err")
        _work(database, tenant)
        command("tasks", "answer", task, "all")
        _work(database, tenant)
        assert watching.wait(60) == 0, (tmp_path / "err").read_text()
    finally:
        watching.kill()
        watching.wait()
    timeline = command("tasks", "show", task, "--json").json["timeline"]
    assert seen() == timeline


def test_watch_of_a_task_that_did_not_complete_ends_with_1(command: Command, tenant: str) -> None:
    assert tenant
    task = _submitted(command)
    command("tasks", "cancel", task)
    watched = command("tasks", "watch", task)
    assert (watched.code, "canceled" in watched.out) == (1, True)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_watch_of_all_tasks_ends_cleanly_at_ctrl_c(
    command: Command, database: str, tenant: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    first = _submitted(command)
    environment = {"DATABASE_URL": database, "HOLDFAST_TENANT": tenant}
    watching = start(tmp_path, "tasks", "watch", "--poll-seconds", "0.05", *options, **environment)
    out = tmp_path / "out"
    try:
        wait_until(
            lambda: first in out.read_text(), "the task that was there", watching, tmp_path / "err"
        )
        second = _submitted(command)
        wait_until(lambda: second in out.read_text(), "the new task", watching, tmp_path / "err")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == 0
    finally:
        watching.kill()
        watching.wait()
    assert out.read_text().count(first) <= 2
    reply = (tmp_path / "err").read_text().splitlines()
    assert [line for line in reply if "was opened as postgres" not in line] == []


def test_every_command_teaches_in_its_help(command: Command) -> None:
    shown = command("tasks", "--help").out
    for name in ("list", "show", "replay", "submit", "answer", "cancel", "pause", "resume"):
        assert name in shown
        assert len(command("tasks", name, "--help").out.splitlines()) > 8
    for name in ("list", "show", "replay", "submit", "answer", "watch"):
        assert f"holdfast tasks {name}" in command("tasks", name, "--help").out


def test_a_list_fits_80_columns_and_its_short_ids_name_the_tasks(
    command: Command, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tenant
    monkeypatch.setattr(tasks._out, "_width", 80)
    ids = [_submitted(command, "--owner", "ana-of-the-harbour") for _ in range(3)]
    lines = [line for line in command("tasks", "list").out.splitlines() if "submitted" in line]
    assert all(len(line) <= 80 and "Tides?" in line for line in lines), lines
    for line in lines:
        short = line.split()[0]
        assert len(short) < 36
        [whole] = [one for one in ids if one.endswith(short)]
        assert command("tasks", "show", short, "--json").json["id"] == whole


def test_submitting_to_an_agent_that_nobody_works_for_warns(
    command: Command, database: str, tenant: str
) -> None:
    warned = command("tasks", "submit", "nobody", "Tides?", "--json")
    assert warned.json["state"] == "submitted"
    assert "no task of the agent nobody was ever claimed" in " ".join(warned.err.split())
    _submitted(command)
    _work(database, tenant)
    assert "was ever claimed" not in command("tasks", "submit", "researcher", "More?").err


def test_replay_shows_the_last_event_unless_told_otherwise(
    command: Command, database: str, tenant: str
) -> None:
    task = _submitted(command)
    _work(database, tenant)
    assert command("tasks", "replay", task, "--json").json["state"] == "input-required"
    assert command("tasks", "answer", task, "chapter 2").code == 0
    _work(database, tenant)
    last = command("tasks", "replay", task, "--json").json
    assert last["state"] == "completed"
    assert last["messages"][-1]["text"] == "Done with chapter 2"
    assert "Done with chapter 2" in command("tasks", "replay", task).out


def test_an_answer_says_what_happened_and_what_is_next(
    command: Command, database: str, tenant: str
) -> None:
    task = _submitted(command)
    _work(database, tenant)
    reply = command("tasks", "answer", task, "chapter 2").out
    assert f"The answer is stored. Task {task} is queued, and a worker continues it." in reply
    assert f"holdfast tasks watch {task}" in reply
    assert "holdfast worker module:app" in reply


def test_an_empty_list_says_where_it_looked(
    command: Command, database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments, what in (
        (("tasks", "list"), "no tasks in"),
        (("tasks", "list", "--state", "working"), "no tasks match in"),
        (("contexts", "list"), "no contexts in"),
        (("keys", "list"), "no keys in"),
    ):
        reply = command(*arguments).out
        assert reply.startswith(f"{what} {mask_url(database)}, tenant {tenant}\n"), reply
        assert "DATABASE_URL" in reply
    assert "tenant nobody" in command("tasks", "list", "--tenant", "nobody").out
    assert command("tasks", "list", "--json").json["tasks"] == []
    with tempfile.TemporaryDirectory(prefix="hf-cli-") as name:
        # The user that runs the embedded server must be able to enter it.
        Path(name).chmod(0o755)
        monkeypatch.delenv("DATABASE_URL")
        monkeypatch.setenv("HOLDFAST_DIR", f"{name}/state")
        folder = Path(name).resolve() / "state"
        assert command("db", "migrate").code == 0
        reply = command("tasks", "list").out
        assert reply.startswith(f"no tasks in the embedded Postgres in {folder}, tenant {tenant}\n")
        assert "HOLDFAST_DIR" in reply
        [doctor] = command("doctor", "--json").json
        assert doctor["where"] == f"the embedded Postgres in {folder}"
