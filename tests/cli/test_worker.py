"""``holdfast worker`` as a person and as an orchestrator run it."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import holdfast
from holdfast import TaskState
from holdfast.cli.logs import JsonLines, PlainLines
from holdfast.cli.worker_screen import WorkerScreen
from holdfast.runtime.runner import Ending
from tests.cli.command import Command, start, wait_until

AGENTS = """
import asyncio, holdfast

app = holdfast.App("worker-test")
idle = holdfast.App("idle")
text = "not an app"

@app.handler
async def work(task):
    task.log.info("begun")
    if task.message.text == "long":
        await asyncio.sleep(3600)
    return "done"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module of agents, and nothing of it left in this process."""
    name = f"agents_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    root, ours = logging.getLogger(), logging.getLogger("holdfast")
    before = (root.handlers[:], root.level, ours.level)
    yield tmp_path
    root.handlers[:], root.level, ours.level = before


def _module(place: Path) -> str:
    return f"agents_{place.name}"


def _lines(place: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place / "err").read_text().splitlines()]


def test_a_worker_does_tasks_logs_json_and_drains_with_exit_code_0(
    command: Command, database: str, tenant: str, place: Path
) -> None:
    task = command("tasks", "submit", "worker-test", "short", "--json").json["id"]
    worker = start(
        place,
        *("worker", f"{_module(place)}:app", "--concurrency", "2", "--log-json"),
        *("--tenant", tenant, "--name", "w1"),
        DATABASE_URL=database,
    )
    try:
        wait_until(
            lambda: "outcome" in (place / "err").read_text(), "the log line", worker, place / "err"
        )
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait()
    [ended] = [line for line in _lines(place) if "outcome" in line]
    assert ended["seconds"] >= 0
    facts = {name: ended[name] for name in ("task", "tenant", "agent", "attempt", "outcome")}
    assert facts == {
        "task": task,
        "tenant": tenant,
        "agent": "worker-test",
        "attempt": 1,
        "outcome": "completed",
    }
    [said] = [line for line in _lines(place) if line["logger"] == "holdfast.handler"]
    assert (said["message"], said["task"], said["tenant"]) == ("begun", task, tenant)
    assert command("tasks", "watch", task).code == 0
    claim = command("tasks", "show", task, "--json").json["timeline"][2]["body"]
    assert claim["worker"] == "w1"


def test_a_second_signal_stops_a_worker_at_once(
    command: Command, database: str, tenant: str, place: Path
) -> None:
    task = command("tasks", "submit", "worker-test", "long", "--json").json["id"]
    worker = start(
        place,
        *("worker", f"{_module(place)}:app", "--grace-seconds", "3600", "--tenant", tenant),
        DATABASE_URL=database,
    )
    err = place / "err"
    try:
        wait_until(lambda: "begun" in err.read_text(), "the handler", worker, place / "err")
        worker.send_signal(signal.SIGINT)
        wait_until(
            lambda: "waiting for 1 handlers" in err.read_text(), "the drain", worker, place / "err"
        )
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 128 + signal.SIGTERM
    finally:
        worker.kill()
        worker.wait()
    assert "Traceback" not in err.read_text()
    assert command("tasks", "show", task, "--json").json["state"] == "working"


@pytest.mark.parametrize(
    ("app", "reply"),
    [
        ("no_such_module_anywhere:app", "no module"),
        ("{module}:nothing", "is not there"),
        ("{module}:text", "is not a holdfast.App"),
        ("{module}:idle", "has no handler"),
        (":app", "module:app"),
    ],
)
def test_an_app_that_cannot_be_run_is_one_line(
    command: Command, tenant: str, place: Path, app: str, reply: str
) -> None:
    assert tenant
    refused = command("worker", app.format(module=_module(place)), "--log-json")
    assert refused.code == 1
    last = refused.err.splitlines()[-1]
    assert last.startswith("holdfast: ")
    assert reply in last
    assert "Traceback" not in refused.err


def test_a_worker_on_memory_is_refused(
    command: Command, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("STORAGE_TYPE", "memory")
    for arguments in (("worker", f"{_module(place)}:app"), ("tasks", "list")):
        refused = command(*arguments)
        assert refused.code == 1
        assert "STORAGE_TYPE is memory, which other processes cannot read" in refused.err
    monkeypatch.delenv("STORAGE_TYPE")
    monkeypatch.setenv("DATABASE_URL", "memory:")
    assert "DATABASE_URL is memory, which" in command("tasks", "list").err


def test_the_screen_shows_what_runs_and_how_the_last_ones_ended() -> None:
    console = Console(record=True, width=120)

    async def draw() -> None:
        app = holdfast.App("researcher")
        screen = WorkerScreen(app.name, 4, console)
        for number in range(12):
            screen.add(Ending(f"t{number}", TaskState.COMPLETED, agent="[a]", seconds=1.25))
        screen.add(Ending("t12", TaskState.FAILED, "ValueError: [/odd]", agent="a"))
        screen.add(Ending("t13", TaskState.INPUT_REQUIRED, agent="a"))
        screen.add(Ending("t14", None, "stopped: the lease is lost", agent="a"))
        console.print(screen.draw())

    asyncio.run(draw())
    shown = console.export_text()
    for words in ("running 0 of 4", "done 12", "failed 1", "to go on 2", "1.2 s", "[a]"):
        assert words in shown
    assert "ValueError: [/odd]" in shown
    assert "the lease is lost" in shown
    assert "t0 " not in shown


def test_a_plain_log_line_tells_the_facts_that_its_text_does_not() -> None:
    facts = {"task": "t1", "tenant": "acme", "outcome": "completed", "seconds": 0.5}
    record = logging.makeLogRecord(
        {"msg": "task %s: completed", "args": ("t1",), "levelname": "INFO", **facts}
    )
    line = PlainLines().format(record)
    assert line.endswith("info    task t1: completed  tenant=acme seconds=0.5")


def test_a_json_log_line_holds_a_traceback() -> None:
    error = ValueError("no such tide")
    caught = (type(error), error, error.__traceback__)
    record = logging.makeLogRecord({"msg": "it broke", "exc_info": caught, "levelname": "ERROR"})
    line = json.loads(JsonLines().format(record))
    assert (line["level"], line["message"]) == ("error", "it broke")
    assert "ValueError: no such tide" in line["error"]
    assert "ValueError: no such tide" in PlainLines().format(record)
