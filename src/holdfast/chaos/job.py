"""What a process of a run is told when it begins, and how it writes down what it saw."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from holdfast.wiring.settings import Settings


@dataclass(frozen=True, slots=True)
class Job:
    """The servers, the tenant and the work of one process; it comes by standard input.

    A URL may hold a password, and everybody on the machine can read a command line.

    >>> Job.from_text(Job("postgresql://db", tenant="t1").to_text()).tenant
    't1'
    """

    url: str
    redis: str = ""
    tenant: str = ""
    folder: str = ""
    level: str = ""
    pace_seconds: float = 0.5
    slot: int = 0
    """Which of the processes of its kind it is; one that takes its place has the same."""
    sessions: int = 0

    @classmethod
    def read(cls) -> Job:
        """What this process was told."""
        return cls.from_text(sys.stdin.readline())

    @classmethod
    def from_text(cls, text: str) -> Job:
        """From one line."""
        return cls(**json.loads(text))

    def to_text(self) -> str:
        """In one line."""
        return json.dumps(dataclasses.asdict(self)) + "\n"

    def begun(self) -> None:
        """Tell that this process is at work: who is hit by a fault should be."""
        ready_file(Path(self.folder), os.getpid()).touch()

    def settings(self, *, max_connections: int) -> Settings:
        """The settings of the environment, and what the job says."""
        return dataclasses.replace(
            Settings.from_environment(),
            tenant=self.tenant,
            ack_level=self.level,
            max_connections=max_connections,
        )


def note(journal: Path, *words: object) -> None:
    """Write a line that survives the process: one write at the end of a file.

    ::

        note(folder / "journal", "ran", task.id)
    """
    with journal.open("ab", buffering=0) as file:
        file.write((" ".join(map(str, (os.getpid(), *words))) + "\n").encode())


def ready_file(folder: Path, pid: int) -> Path:
    """Whether it is there says whether a process is at work.

    ::

        at_work = ready_file(folder, child.pid).exists()
    """
    return folder / f"ready-{pid}"


def stop_file(folder: Path) -> Path:
    """While it is not there, agents go on; a signal would kill one that only just begins.

    ::

        stop_file(folder).touch()
    """
    return folder / "stop"
