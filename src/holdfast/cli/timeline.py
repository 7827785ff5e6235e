"""Formats the events of a task as lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from rich.markup import escape
from rich.table import Table

from holdfast.cli.format import REASON, state_mark
from holdfast.runtime.content import as_text, text_and_data
from holdfast.values.as_json import jsonable
from holdfast.values.content import ChatMessage, ContentBlock, TextBlock
from holdfast.values.formats import ago, clock, short, span
from holdfast.values.lifecycle import WAITING, TaskState
from holdfast.values.tasks.events import (
    ArtifactChunk,
    EventBody,
    StepRecord,
    TaskEvent,
    TaskRequest,
    Transition,
)
from holdfast.values.tasks.records import Artifact, TaskRecord

DETAIL = 90
"""Maximum characters of a text in a line."""

RESULT = 1000
"""Maximum characters of a result, and of the schema of a question."""

SHOWN_CHILDREN = 5
"""Maximum children that a waiting task is shown with."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the timeline; successive chunks of one artifact are one line."""

    seq: str
    at: datetime
    kind: str
    detail: str


def lines(events: Iterable[TaskEvent]) -> Iterator[Line]:
    """Yield the lines of a timeline, in order.

    ::

        for line in lines(await ledger.events(task.id, owner=ANY_OWNER)):
            print(line.seq, line.kind, line.detail)
    """
    chunks: list[TaskEvent] = []
    claimed_at: datetime | None = None
    for event in events:
        if chunks and not _goes_on(chunks[-1], event):
            yield _streamed(chunks)
            chunks = []
        if isinstance(event.body, ArtifactChunk):
            chunks.append(event)
            continue
        line = line_of(event)
        move = event.body
        if isinstance(move, Transition) and move.from_state is TaskState.WORKING and claimed_at:
            worked = span((event.at - claimed_at).total_seconds())
            line = replace(line, detail=f"{line.detail}\n[dim]held for {worked}[/]")
        if isinstance(move, Transition) and move.to_state is TaskState.WORKING:
            claimed_at = event.at
        yield line
    if chunks:
        yield _streamed(chunks)


def line_of(event: TaskEvent) -> Line:
    """Return one event as a line.

    ::

        async for event in ledger.follow(task.id):
            print(line_of(event).detail)
    """
    kind, detail = _described(event.body)
    if event.by_name:
        detail = f"{detail} [dim]by {escape(event.by_name)}[/]"
    return Line(str(event.seq), event.at, kind, detail)


def _described(body: EventBody) -> tuple[str, str]:
    match body:
        case Transition():
            return "state", _moved(body)
        case TaskRequest():
            return "request", f"{body.what} {escape(short(body.note, DETAIL))}".rstrip()
        case ChatMessage():
            said = text_and_data(body.content)
            return "message", f"[bold]{body.role}[/] {escape(short(said, DETAIL))}"
        case StepRecord():
            return "step", _step(body)
        case ArtifactChunk():
            return "artifact", _chunks([body])
        case _ as never:
            assert_never(never)


def draw_lines(events: Sequence[TaskEvent]) -> Table:
    """Return the timeline as a table: time, time since the line before, and event.

    ::

        console.print(draw_lines(await ledger.events(task.id, owner=ANY_OWNER)))
    """
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("seq", justify="right", style="dim")
    table.add_column("at", style="dim")
    table.add_column("after", justify="right", style="dim")
    table.add_column("what")
    table.add_column("detail", overflow="fold")
    before: datetime | None = None
    for line in lines(events):
        after = "" if before is None else span((line.at - before).total_seconds())
        table.add_row(line.seq, clock(line.at)[11:], after, line.kind, line.detail)
        before = line.at
    return table


def draw_head(task: TaskRecord, children: Sequence[TaskRecord] = ()) -> Table:
    """Return a table with the properties and the state of a task, and what it waits for.

    ::

        console.print(draw_head(task))
    """
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    table.add_row("task", f"[bold]{escape(task.id)}[/]")
    table.add_row("state", state_mark(task.state, _reason(task.note)))
    table.add_row("agent", escape(str(task.agent)))
    owner = f", owner {escape(task.owner)}" if task.owner else ""
    table.add_row("context", escape(task.session_id) + owner)
    table.add_row("created", f"{clock(task.created_at)} ({ago(task.created_at)})")
    took = span((task.updated_at - task.created_at).total_seconds())
    table.add_row("last change", f"{clock(task.updated_at)} (after {took})")
    table.add_row(
        "claims",
        f"{task.fence}; {task.attempts} of at most {task.max_attempts} without progress",
    )
    if task.worker:
        until = f" until {clock(task.lease_expires_at)[11:]}" if task.lease_expires_at else ""
        table.add_row("held by", escape(task.worker) + until)
    if task.run_after:
        table.add_row("not before", f"{clock(task.run_after)} ({ago(task.run_after)})")
    for child in children[:SHOWN_CHILDREN]:
        who = f"agent {escape(str(child.agent))}, {state_mark(child.state)}"
        never = "" if child.fence else ", no worker has claimed it yet"
        table.add_row("waits for", f"[bold]{escape(child.id)}[/] {who}{never}")
    if len(children) > SHOWN_CHILDREN:
        table.add_row("", f"and more: holdfast tasks children {escape(task.id)}")
    if task.retry_of:
        table.add_row("retry of", escape(task.retry_of))
    for artifact in task.artifacts:
        table.add_row("artifact", _artifact(artifact, ended=task.terminal))
    if task.result is not None:
        table.add_row("result", escape(short(as_text(task.result), RESULT)))
    if task.state in WAITING and task.status_message:
        table.add_row("asks", escape(text_and_data(task.status_message.content)))
        if wanted := _wanted(task.status_message):
            table.add_row("", escape(wanted))
        table.add_row("", f"[bold]holdfast tasks answer {escape(task.id)} TEXT[/]")
    return table


def size_of(parts: Iterable[ContentBlock]) -> str:
    """Return the size of content as text.

    >>> size_of([TextBlock("# Tides")])
    '7 characters'
    """
    texts = [part.text for part in parts if isinstance(part, TextBlock)]
    return f"{sum(map(len, texts)):,} characters"


def _goes_on(last: TaskEvent, event: TaskEvent) -> bool:
    before, body = last.body, event.body
    return (
        isinstance(before, ArtifactChunk)
        and isinstance(body, ArtifactChunk)
        and body.append
        and (body.artifact_id, event.fence) == (before.artifact_id, last.fence)
    )


def _streamed(events: Sequence[TaskEvent]) -> Line:
    first, last = events[0], events[-1]
    seq = str(first.seq) if first is last else f"{first.seq}-{last.seq}"
    chunks = [event.body for event in events if isinstance(event.body, ArtifactChunk)]
    took = f" in {span((last.at - first.at).total_seconds())}" if len(chunks) > 1 else ""
    return Line(seq, last.at, "artifact", _chunks(chunks) + took)


def _chunks(chunks: Sequence[ArtifactChunk]) -> str:
    begins = "" if chunks[0].append else ", from the start"
    ends = ", complete" if chunks[-1].last_chunk else ""
    size = size_of(part for chunk in chunks for part in chunk.parts)
    count = "1 chunk" if len(chunks) == 1 else f"{len(chunks)} chunks"
    return f"[bold]{escape(chunks[0].artifact_id)}[/] {count}, {size}{begins}{ends}"


def _artifact(artifact: Artifact, *, ended: bool) -> str:
    # A handler need not flag its last chunk, and after the task's end no chunk can follow.
    whole = "" if artifact.complete or ended else ", no last chunk yet"
    return f"[bold]{escape(artifact.id)}[/] {size_of(artifact.parts)}{whole}"


def _moved(move: Transition) -> str:
    origin = f"{state_mark(move.from_state)} → " if move.from_state else ""
    details = [f"by {move.by}"]
    if move.to_state is TaskState.WORKING:
        details = [f"attempt {move.attempt}", f"fence {move.fence}", f"by {escape(move.worker)}"]
    if move.run_after:
        details.append(f"not before {clock(move.run_after)[11:]}")
    note = f"\n{escape(short(_reason(move.note), REASON))}" if move.note else ""
    return f"{origin}{state_mark(move.to_state)} [dim]{', '.join(details)}[/]{note}"


def _step(step: StepRecord) -> str:
    again = f" #{step.key.occurrence}" if step.key.occurrence > 1 else ""
    name = f"[bold]{escape(step.key.name)}[/]{again}"
    match step.key.kind:
        case "ask":
            return f"the answer to {name} is kept"
        case "sleep":
            return f"{name} until {escape(str(step.result))}"
        case "try" if isinstance(step.result, dict):
            why = escape(short(str(step.result.get("error", "")), DETAIL))
            return f"[bold]{escape(step.key.name)}[/] failed, try {step.result.get('try')}: {why}"
    result = json.dumps(jsonable(step.result), ensure_ascii=False)
    return f"{name} = {escape(short(result, DETAIL))}"


def _wanted(question: ChatMessage) -> str:
    """Return which answers fit a question: its options, or its JSON Schema."""
    options, schema = question.metadata.get("options"), question.metadata.get("schema")
    if isinstance(options, list):
        return short(f"one of: {', '.join(map(str, options))}", RESULT)
    if isinstance(schema, dict):
        return short(f"the answer must fit the JSON Schema {as_text(schema)}", RESULT)
    return ""


def _reason(note: str) -> str:
    """Return the last line of a traceback, which is the error, without Holdfast's module names."""
    lines = note.strip().splitlines()
    return re.sub(r"^holdfast\.[\w.]+\.", "", lines[-1].strip()) if lines else ""
