"""The ``holdfast`` command, in this process and in one of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.main import main

LIMIT_SECONDS = 60
"""How long a test waits for what must come; far more than it takes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


class Command:
    """Runs commands in this process, with the environment that the test has set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Answer:
        self._monkeypatch.setattr(sys, "argv", ["holdfast", *arguments])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        out, err = self._capsys.readouterr()
        return Answer(code if isinstance(code, int) else int(code is not None), out, err)


def start(place: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """A command in a process of its own, in a folder; its output goes to files there."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with (place / "out").open("ab") as out, (place / "err").open("ab") as err:
        return subprocess.Popen(
            [sys.executable, "-m", "holdfast.cli", *arguments],
            cwd=place,
            env={**kept, "COLUMNS": "120", "PYTHONUNBUFFERED": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            text=True,
            # A test run in the background ignores Ctrl-C, and so would what it starts.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )


def wait_until(
    reached: Callable[[], bool], what: str, process: subprocess.Popen[str], err: Path
) -> None:
    """Wait for a condition that a process brings about; one that has ended never will."""
    limit = time.monotonic() + LIMIT_SECONDS
    while not reached():
        assert process.poll() is None, f"{what}: it ended first: {err.read_text()[-2000:]}"
        assert time.monotonic() < limit, f"{what}: not within {LIMIT_SECONDS} seconds"
        time.sleep(0.02)
