"""The job that a process of a run reads at its start, and the files that it writes."""

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
    """The servers, the tenant and the work of one process, read from standard input.

    It is not on the command line, which every user of the machine can read: a URL may contain a
    password.

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
    """Number of the process within its role; its replacement has the same number."""
    sessions: int = 0

    @classmethod
    def read(cls) -> Job:
        """Read the job of this process from standard input."""
        return cls.from_text(sys.stdin.readline())

    @classmethod
    def from_text(cls, text: str) -> Job:
        """Parse a job from one line."""
        return cls(**json.loads(text))

    def to_text(self) -> str:
        """Return the job as one line."""
        return json.dumps(dataclasses.asdict(self)) + "\n"

    def begun(self) -> None:
        """Signal that this process is working, so that faults can hit it."""
        ready_file(Path(self.folder), os.getpid()).touch()

    def settings(self, *, max_connections: int) -> Settings:
        """Return the settings of the environment, overridden by the job."""
        return dataclasses.replace(
            Settings.from_environment(),
            tenant=self.tenant,
            ack_level=self.level,
            max_connections=max_connections,
        )


def note(journal: Path, *words: object) -> None:
    """Append a line to a file in one write, so that it survives the process.

    ::

        note(folder / "journal", "ran", task.id)
    """
    with journal.open("ab", buffering=0) as file:
        file.write((" ".join(map(str, (os.getpid(), *words))) + "\n").encode())


def ready_file(folder: Path, pid: int) -> Path:
    """Return the path of a file that exists while a process is working.

    ::

        at_work = ready_file(folder, child.pid).exists()
    """
    return folder / f"ready-{pid}"


def stop_file(folder: Path) -> Path:
    """Return the path of a file that makes agents stop once it exists.

    A signal instead would kill an agent that has only just started.

    ::

        stop_file(folder).touch()
    """
    return folder / "stop"
