"""The events of a task as rows of a list, and as the data of a chart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from holdfast.studio.pages import LABELS, last_line
from holdfast.values.content import ChatMessage, TextBlock
from holdfast.values.lifecycle import Actor, TaskState
from holdfast.values.tasks.events import (
    ArtifactChunk,
    StepRecord,
    TaskEvent,
    TaskRequest,
    Transition,
)

SHOWS = ("steps", "messages", "problems")
_PROBLEMS = {TaskState.FAILED, TaskState.REJECTED, TaskState.CANCELED}


def rows(events: Iterable[TaskEvent], show: str = "") -> list[dict[str, Any]]:
    """Return the rows of the list: consecutive chunks of an artifact are one row.

    ``say`` and ``ask`` steps are left out: their message has the same text. ::

        rows(await ledger.events(task.id), "problems")
    """
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    run: dict[str, Any] | None = None
    for event in events:
        body = event.body
        if isinstance(body, StepRecord) and body.key.kind != "step":
            if found and found[-1]["last"] == event.seq - 1:
                found[-1]["last"] = event.seq
            continue
        if isinstance(body, ArtifactChunk):
            length = sum(len(one.text) for one in body.parts if isinstance(one, TextBlock))
            if run is not None and run["id"] == body.artifact_id and body.append:
                run["last"], run["n"] = event.seq, run["n"] + 1
                run["size"], run["done"] = run["size"] + length, body.last_chunk
                continue
            run = _row(event) | {
                "id": body.artifact_id,
                "n": 1,
                "size": length,
                "done": body.last_chunk,
                "again": not body.append and body.artifact_id in seen,
            }
            seen.add(body.artifact_id)
            found.append(run)
            continue
        run = None
        row = _row(event)
        if isinstance(body, Transition):
            row["lost"] = event.by is Actor.RECOVERY
            row["problem"] = row["lost"] or body.to_state in _PROBLEMS
        found.append(row)
    shown = [row for row in found if not show or row["show"] == show or show == _problem(row)]
    for before, row in pairwise(shown):
        row["since"] = (row["at"] - before["at"]).total_seconds()
    return shown


def _problem(row: dict[str, Any]) -> str:
    return "problems" if row["problem"] else ""


def _row(event: TaskEvent) -> dict[str, Any]:
    shows = {"step": "steps", "message": "messages", "artifact": "steps"}
    return {
        "seq": event.seq,
        "last": event.seq,
        "at": event.at,
        "fence": event.fence,
        "by": str(event.by),
        "by_name": event.by_name,
        "since": None,
        "body": event.body,
        "kind": event.kind,
        "lost": False,
        "problem": False,
        "show": shows.get(event.kind, ""),
    }


def changes(event: TaskEvent | None) -> list[str]:
    """Return in sentences what one event changed in its task.

    ::

        changes((await ledger.events(task.id, after_seq=4, limit=1))[0])
    """
    match event.body if event is not None else None:
        case Transition() as body:
            begun = body.from_state
            moved = f"State: {LABELS[body.to_state]}"
            found = [moved if begun is None else f"{moved}, before that {LABELS[begun]}"]
            if body.to_state is TaskState.WORKING:
                found.append(f"Worker: {body.worker}, claim {body.fence}")
            return found
        case StepRecord() as body:
            return [f"Step {body.key.name} stored"]
        case ChatMessage() as body:
            return [f"Message of the {body.role} added"]
        case ArtifactChunk() as body:
            size = sum(len(one.text) for one in body.parts if isinstance(one, TextBlock))
            how = "added to" if body.append else "begin"
            return [f"{size} characters {how} {body.artifact_id}"]
        case TaskRequest() as body:
            return [f"Request: {body.what}"]
    return []


def picture(events: Sequence[TaskEvent], *, live: bool) -> dict[str, Any]:
    """Return the data for the chart of a timeline, as plain JSON.

    ::

        picture(await ledger.events(task.id), live=True)
    """
    return {
        "events": [_drawn(event) for event in events],
        "now": datetime.now(UTC).timestamp(),
        "live": live,
    }


def _drawn(event: TaskEvent) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "seq": event.seq,
        "t": event.at.timestamp(),
        "kind": event.kind,
        "fence": event.fence,
        "by": str(event.by),
    }
    match event.body:
        case Transition() as body:
            drawn |= {
                "to": str(body.to_state),
                "worker": body.worker,
                "note": last_line(body.note)[:200],
            }
        case StepRecord() as body:
            began = body.started_at
            drawn |= {
                "name": body.key.name,
                "skind": body.key.kind,
                "from": None if began is None else began.timestamp(),
            }
        case ChatMessage() as body:
            drawn |= {"role": str(body.role), "text": body.text[:80]}
        case ArtifactChunk() as body:
            drawn |= {"name": body.artifact_id, "append": body.append}
        case TaskRequest() as body:
            drawn |= {"what": body.what}
    return drawn
