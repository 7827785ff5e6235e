"""Writes docs/reference/task-lifecycle.md from the table of legal edges."""

from __future__ import annotations

from pathlib import Path

from holdfast.values.lifecycle import EDGES, TERMINAL, Actor, TaskState

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "task-lifecycle.md"

_INTRO = """\
# The life of a task

Every task of the `TaskLedger` that workers run moves along the edges below and no others. Each move
is one row of an append-only log: numbered from 1 without a gap, with who made it, the fence, the
attempt and a note. Nothing leaves a terminal state; `retry` submits a new task that names the old
one. A task that somebody else runs goes where they report, until it has ended
([how](../how-to/adopt-tasks.md)).

This page is made from `holdfast.values.lifecycle.EDGES` by `scripts/lifecycle_page.py`.
"""

_RULES = """\
## What comes first

- A **cancel** that was requested while a worker held the task comes before whatever the worker
  reports: the task becomes `canceled`. A late completion never overwrites it.
- A **pause** that was requested takes effect where the task would go back to the queue, or when the
  worker confirms it; a task that is done by then is done.
- A task whose attempt ends without progress at `max_attempts` goes to `failed`, with the reason,
  and not back to the queue. A stored step, an answer, a pause, a sleep and a release are progress.
- A worker's write counts while the task is `working` under the fence of its lease. Recovery takes
  back what has an expired lease; the next claim raises the fence, and the old holder can write
  nothing any more.
"""


def page() -> str:
    """The whole page."""
    return f"{_INTRO}\n{_diagram()}\n{_states()}\n{_edges()}\n{_RULES}"


def _name(state: TaskState) -> str:
    # Mermaid's names have no hyphens.
    return state.value.replace("-", "_")


def _diagram() -> str:
    lines = ["```mermaid", "stateDiagram-v2"]
    for edge in EDGES:
        start = "[*]" if edge.from_state is None else _name(edge.from_state)
        lines.append(f"    {start} --> {_name(edge.to_state)}: {_who(edge.actors)}")
    lines += [f"    {_name(state)} --> [*]" for state in TaskState if state in TERMINAL]
    return "\n".join([*lines, "```", ""])


def _who(actors: frozenset[Actor]) -> str:
    return ", ".join(actor for actor in Actor if actor in actors)


def _states() -> str:
    live = ", ".join(f"`{state}`" for state in TaskState if state not in TERMINAL)
    done = ", ".join(f"`{state}`" for state in TaskState if state in TERMINAL)
    return f"Live: {live}.\n\nTerminal: {done}.\n"


def _edges() -> str:
    rows = ["## Edges", "", "| from | to | by | when |", "|---|---|---|---|"]
    for edge in EDGES:
        start = f"`{edge.from_state}`" if edge.from_state else ""
        rows.append(f"| {start} | `{edge.to_state}` | {_who(edge.actors)} | {edge.when} |")
    return "\n".join([*rows, ""])


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE.name}")
