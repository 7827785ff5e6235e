"""``holdfast demo``: what it promises on its own page, done by real processes."""

from __future__ import annotations

import fcntl
import json
import re
import runpy
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from holdfast.cli.demo import Play, free_port
from holdfast.cli.demo_agent import REPORT
from holdfast.cli.demo_stage import Stage
from tests.architecture.source import ROOT
from tests.cli.command import Command, start, wait_until


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that an embedded server's user can enter."""
    with tempfile.TemporaryDirectory(prefix="hf-demo-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _nobody_serves(folder: Path) -> bool:
    """The server holds this lock as long as it lives."""
    with (folder / "state" / "server.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.timeout(300)
def test_the_demo_survives_its_kills_and_repeats_nothing(place: Path) -> None:
    folder = place / "kept"
    others = {"DATABASE_URL": "postgresql://ana@127.0.0.1:1/none", "HOLDFAST_TENANT": "acme"}
    # Without a terminal it ends by itself.
    demo = start(place, "demo", "--json", "--port", "0", "--folder", str(folder), **others)
    try:
        code = demo.wait(240)
    finally:
        demo.terminate()
        demo.wait(60)
    assert code == 0, (place / "err").read_text() + (place / "out").read_text()
    verdict: dict[str, Any] = json.loads((place / "out").read_text())
    assert verdict["state"] == "completed"
    assert verdict["killed"] == ["worker", "worker", "service", "postgres"]
    assert (verdict["kills"], verdict["workers"]) == (4, 3)
    assert verdict["steps_executed"] == {"fetch": 1, "read": 1, "draft": 1, "publish": 1}
    # The worker is killed in its draft. One that stands still for longer than its lease of two
    # seconds, beside other work, loses its task and begins again too.
    assert verdict["steps_begun"]["draft"] >= 2
    assert min(verdict["steps_begun"].values()) == 1
    assert verdict["repeated_steps"] == 0
    assert verdict["artifact_identical"]
    assert verdict["question_survived"]
    assert _nobody_serves(folder)


@pytest.mark.timeout(300)
def test_a_demo_that_is_ended_in_the_middle_leaves_nothing_running(place: Path) -> None:
    demo = start(place, "demo", "--port", "0", "--folder", str(place / "kept"))
    out = place / "out"
    try:
        wait_until(lambda: "submitted task" in out.read_text(), "the task", demo, place / "err")
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(60) == 128 + signal.SIGTERM
    finally:
        demo.kill()
        demo.wait()
    assert _nobody_serves(place / "kept")
    assert "Traceback" not in (place / "err").read_text()


@pytest.mark.timeout(300)
def test_a_demo_that_stays_opens_studio_on_a_world_with_everything(place: Path) -> None:
    demo = start(place, "demo", "--stay", "--port", "0", "--folder", str(place / "kept"))
    out = place / "out"
    try:
        wait_until(lambda: "holdfast studio" in out.read_text(), "all", demo, place / "err")
        found = re.search(r"http://\S+/studio/login\?token=\S+", out.read_text())
        assert found
        with httpx.Client(follow_redirects=True) as browser:
            inbox = browser.get(found[0])
            assert (inbox.status_code, inbox.url.path) == (200, "/studio")
            assert "Refund 1,240.00 EUR" in inbox.text
            tasks = browser.get(inbox.url.join("/studio/tasks"))
            assert "is not a price" in tasks.text
            assert "Goulet of Brest" in tasks.text
        demo.send_signal(signal.SIGINT)
        assert demo.wait(60) == 0
    finally:
        demo.kill()
        demo.wait()
    assert _nobody_serves(place / "kept")


@pytest.mark.parametrize(
    ("journal", "text", "ok"),
    [
        ("began {0}\nfinished {0}\n", "", False),
        ("began {0}\nfinished {0}\n", "whole", True),
        ("began {0}\nbegan {0}\nfinished {0}\n", "whole", True),
        ("began {0}\nfinished {0}\nbegan {0}\n", "whole", False),
        ("began {0}\n", "whole", False),
    ],
)
def test_the_verdict_is_by_what_the_processes_wrote(
    place: Path, monkeypatch: pytest.MonkeyPatch, journal: str, text: str, *, ok: bool
) -> None:
    async def undisturbed() -> str:
        return "whole"

    monkeypatch.setattr("holdfast.cli.demo._undisturbed", undisturbed)
    with Stage(str(place), port=1) as stage:
        lines = "".join(journal.format(step) for step in ("fetch", "read", "draft", "publish"))
        stage.journal.write_text("".join(f"7 {line}\n" for line in lines.splitlines()))
        done = {
            "id": "t1",
            "status": {"state": "TASK_STATE_COMPLETED"},
            "artifacts": [{"artifactId": REPORT, "parts": [{"text": text}]}],
        }
        verdict = Play(stage, Console(quiet=True))._verdict(done)
    assert verdict["ok"] is ok


def test_json_without_once_is_refused(command: Command) -> None:
    refused = command("demo", "--json", "--stay")
    assert (refused.code, "--once" in refused.err) == (1, True)


def test_a_port_that_is_taken_is_not_used() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        assert free_port(number) != number


@pytest.mark.parametrize("name", ["agent.py", "tour.py"])
def test_the_examples_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) >= 2
