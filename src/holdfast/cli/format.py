"""Formats states for tables."""

from __future__ import annotations

from rich.markup import escape

from holdfast.values.formats import short
from holdfast.values.lifecycle import TaskState

_STYLES = {
    TaskState.SUBMITTED: "cyan",
    TaskState.WORKING: "blue",
    TaskState.INPUT_REQUIRED: "yellow",
    TaskState.AUTH_REQUIRED: "yellow",
    TaskState.PAUSED: "magenta",
    TaskState.COMPLETED: "green",
    TaskState.FAILED: "red",
    TaskState.CANCELED: "bright_black",
    TaskState.REJECTED: "red",
}


REASON = 400
"""The maximal length of a reason; long enough to show its end, which has the fix."""


def state_mark(state: TaskState | None, why: str = "") -> str:
    """Return a state in its colour; without a state, the reason ``why``.

    >>> state_mark(TaskState.COMPLETED)
    '[green]completed[/]'
    """
    if state is None:
        return f"[yellow]{escape(short(why))}[/]"
    more = f": {escape(short(why, REASON))}" if why else ""
    return f"[{_STYLES[state]}]{state}[/]{more}"
