"""The live display of a running worker."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from holdfast.cli.format import state_mark
from holdfast.runtime.runner import Ending
from holdfast.runtime.worker import Worker
from holdfast.values.formats import span
from holdfast.values.lifecycle import TaskState

RECENT = 10
"""Number of recent runs that are shown."""


class WorkerScreen:
    """Live counts and recent runs of one worker.

    ::

        screen = WorkerScreen("researcher", 10)
        with screen.shown(Worker(app, state, watch=screen.add)):
            ...
    """

    def __init__(self, app: str, concurrency: int, console: Console | None = None) -> None:
        self._app = app
        self._concurrency = concurrency
        self._console = console or Console()
        self._counts: Counter[str] = Counter()
        self._recent: deque[tuple[datetime, Ending]] = deque(maxlen=RECENT)
        self._begun = time.monotonic()
        self._worker: Worker | None = None

    def add(self, ending: Ending) -> None:
        """Add the outcome of a run."""
        self._counts[_column(ending)] += 1
        self._recent.append((datetime.now().astimezone(), ending))

    @contextmanager
    def shown(self, worker: Worker) -> Iterator[None]:
        """Show the display, updated four times a second, until the block ends."""
        self._worker = worker
        with Live(
            get_renderable=self.draw, console=self._console, refresh_per_second=4, transient=False
        ):
            yield

    def draw(self) -> RenderableType:
        """Return the current display."""
        running = self._worker.running if self._worker else 0
        name = self._worker.name if self._worker else "worker"
        up = span(time.monotonic() - self._begun)
        head = Text.from_markup(
            f"[bold]{escape(self._app)}[/]  {escape(name)}  up {up}  "
            f"running [bold]{running}[/] of {self._concurrency}  "
            f"[green]done {self._counts['done']}[/]  [red]failed {self._counts['failed']}[/]  "
            f"[yellow]to go on {self._counts['later']}[/]"
        )
        table = Table("when", "task", "agent", "outcome", "took", box=None, pad_edge=False)
        for when, one in self._recent:
            table.add_row(
                f"{when:%H:%M:%S}",
                one.task_id,
                escape(one.agent),
                state_mark(one.state, one.why),
                span(one.seconds),
            )
        hint = Text("Ctrl-C drains: handlers may end, the other tasks are released.", style="dim")
        return Group(head, table, hint)


def _column(ending: Ending) -> str:
    match ending.state:
        case TaskState.COMPLETED:
            return "done"
        case TaskState.FAILED | TaskState.REJECTED | TaskState.CANCELED:
            return "failed"
        case _:
            return "later"
