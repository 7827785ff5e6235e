"""The output of ``holdfast bench``: a progress bar while it measures, then tables."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Self

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from holdfast.bench.report_sheets import Sheet, made_by, sheets


class Screen:
    """A progress bar on standard error that advances with each step of a suite.

    ::

        with Screen(12) as screen:
            screen.update("append 1")
    """

    def __init__(self, steps: int) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._steps = steps
        self._bar = self._progress.add_task("starting", total=steps)

    def update(self, doing: str) -> None:
        """Show the step that begins; the number of steps is an estimate, so the bar never fills."""
        done = self._progress.tasks[0].completed
        self._progress.update(
            self._bar, description=doing, completed=min(done + 1, self._steps - 1)
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()


def show(found: dict[str, dict[str, Any]], missing: list[dict[str, str]], *, as_json: bool) -> None:
    """Print the results: those of one suite directly, those of several by suite name.

    ::

        show({"stores": facts}, [], as_json=False)
    """
    if as_json:
        alone = len(found) == 1 and not missing
        whole = next(iter(found.values())) if alone else found | {"missing": missing}
        typer.echo(json.dumps(whole, indent=2, ensure_ascii=False))
        return
    out = Console()
    for name, facts in found.items():
        for sheet in sheets(name, facts):
            out.print(_table(sheet))
            for note in sheet.notes:
                out.print(note, markup=False)
        out.print(made_by(facts), style="dim", markup=False)
    for one in missing:
        out.print(f"not run: {one['name']}, {one['why']}", markup=False)


def _table(sheet: Sheet) -> Table:
    table = Table(*map(escape, sheet.columns), title=escape(sheet.title), title_justify="left")
    for row in sheet.rows:
        style = "red" if any("(missed)" in cell for cell in row) else ""
        table.add_row(*map(escape, row), style=style)
    return table
