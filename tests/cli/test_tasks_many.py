"""``holdfast tasks`` for many tasks at once: counts, workers, filters and requests."""

from __future__ import annotations

import asyncio

import holdfast
from tests.cli.command import Command


def _submit(command: Command, text: str, agent: str = "writer") -> str:
    found: str = command("tasks", "submit", agent, text, "--json").json["id"]
    return found


def test_tasks_are_counted_and_found_by_their_first_message(command: Command, tenant: str) -> None:
    assert tenant
    tides, boats = _submit(command, "the tides"), _submit(command, "the boats", "reader")
    assert command("tasks", "counts", "--json").json["counts"] == {"submitted": 2}
    assert command("tasks", "counts", "--by-agent", "--json").json["counts"] == {
        "reader": 1,
        "writer": 1,
    }
    assert "2 in all" in command("tasks", "counts").out
    [found] = command("tasks", "list", "--text", "TIDES", "--json").json["tasks"]
    assert (found["id"], found["first_message"]["text"]) == (tides, "the tides")
    listed = command("tasks", "list", "--oldest", "--json").json["tasks"]
    assert [one["id"] for one in listed] == [tides, boats]
    assert [
        one["id"] for one in command("tasks", "list", "--id-prefix", boats, "--json").json["tasks"]
    ] == [boats]
    assert "the boats" in command("tasks", "list").out


def test_workers_that_hold_tasks_are_listed(command: Command, tenant: str, database: str) -> None:
    task = _submit(command, "the tides")
    assert command("tasks", "workers", "--json").json == []

    async def claim() -> None:
        async with holdfast.open(database, tenant=tenant) as state:
            await state.tasks.claim("w1")

    asyncio.run(claim())
    [worker] = command("tasks", "workers", "--json").json
    assert (worker["name"], worker["task_ids"]) == ("w1", [task])
    assert "w1" in command("tasks", "workers").out


def test_many_tasks_are_paused_canceled_and_retried_at_once(command: Command, tenant: str) -> None:
    assert tenant
    tasks = sorted(_submit(command, "the tides") for _ in range(2))
    other = _submit(command, "the boats", "reader")
    dry = command("tasks", "cancel-many", "--agent", "writer", "--dry-run", "--json").json
    assert (dry["task_ids"], dry["dry_run"]) == (tasks, True)
    assert "--yes" in command("tasks", "cancel-many", "--agent", "writer").err
    assert "filter" in command("tasks", "cancel-many", "--yes").err
    arguments = ("--text", "boats", "--by", "ana", "--yes", "--json")
    assert command("tasks", "pause-many", *arguments).json["task_ids"] == [other]
    assert command("tasks", "show", other, "--json").json["timeline"][-1]["by_name"] == "ana"
    assert "by ana" in command("tasks", "show", other).out
    done = command("tasks", "cancel-many", "--agent", "writer", "--yes", "--json").json
    assert done["task_ids"] == tasks
    again = command("tasks", "retry-many", "--state", "canceled", "--yes", "--json").json
    assert (again["task_ids"], len(again["new_task_ids"])) == (tasks, 2)
    assert command("tasks", "counts", "--json").json["counts"] == {
        "canceled": 2,
        "paused": 1,
        "submitted": 2,
    }
    assert "--yes" in command("tasks", "delete", other).err
    assert f"deleted {other}" in command("tasks", "delete", other, "--yes").out
    assert "paused" not in command("tasks", "counts", "--json").json["counts"]


def test_a_failed_task_is_resumed_and_a_task_forked(
    command: Command, tenant: str, database: str
) -> None:
    task = _submit(command, "the tides")
    assert command("tasks", "resume-failed", task).code != 0

    async def fail() -> None:
        async with holdfast.open(database, tenant=tenant) as state:
            [claimed] = await state.tasks.claim("w1")
            await state.tasks.transition(claimed.lease, "failed")

    asyncio.run(fail())
    again = command("tasks", "resume-failed", task, "--key", "k1", "--json").json
    assert (again["retry_of"], again["state"]) == (task, "submitted")
    fork = command("tasks", "fork", task, "--at", "2", "--text", "the boats", "--json").json
    assert fork["session_id"] != again["session_id"]
    [found] = command("tasks", "list", "--text", "boats", "--json").json["tasks"]
    assert found["id"] == fork["id"]


def test_commands_for_many_tasks_name_the_options_that_filter(
    command: Command, tenant: str
) -> None:
    assert tenant
    _submit(command, "the tides")
    for what in ("cancel-many", "pause-many", "retry-many"):
        lacking = command("tasks", what, "--yes")
        assert (lacking.code, "such as --agent or --state" in lacking.err) == (1, True)


def test_a_time_that_cannot_be_read_is_refused_with_an_example(
    command: Command, tenant: str
) -> None:
    assert tenant
    task = _submit(command, "the tides")
    for option in ("--since", "--before"):
        wrong = " ".join(command("tasks", "list", option, "yesterday").err.split())
        assert "'yesterday' is not a time" in wrong
        assert "2030-01-31T18:30" in wrong
    for early in ("2000-01-31", "2000-01-31T18:30", "2000-01-31 18:30:15", "2000-01-31T18:30Z"):
        [found] = command("tasks", "list", "--since", early, "--json").json["tasks"]
        assert found["id"] == task
