"""Converts tasks in memory to archive records, and back: an import replays their timelines."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.inmemory.tasks.data import (
    ContextRow,
    Delivery,
    InboxRow,
    LedgerData,
    MarkRow,
    TaskRow,
)
from holdfast.engines.inmemory.tasks.view import NEVER
from holdfast.spi.archive import task_records as of
from holdfast.spi.tasks.records import StoredBody, StoredEvent
from holdfast.spi.tasks.stored import (
    StoredChunk,
    StoredFeedback,
    StoredMessage,
    StoredPush,
    StoredStep,
)
from holdfast.values.errors import NotFoundError
from holdfast.values.identity import AgentId
from holdfast.values.ids import new_id
from holdfast.values.lifecycle import TaskState
from holdfast.values.tasks.cleanup import CleanupMark
from holdfast.values.tasks.events import StepKey, TaskRequest, Transition


def dump_contexts(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.ContextRecord]:
    """Yield the contexts."""
    del at
    for _, one in sorted(engine.table(tenant, LedgerData).contexts.items()):
        yield of.ContextRecord(one.owner, one.id, one.created_at)


def load_context(engine: InMemory, tenant: str, one: of.ContextRecord) -> None:
    """Store a context."""
    contexts = engine.table(tenant, LedgerData).contexts
    contexts.setdefault((one.owner, one.id), ContextRow(one.id, one.owner, one.created_at))


def dump_tasks(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.TaskRecord]:
    """Yield the tasks."""
    del at
    data = engine.table(tenant, LedgerData)
    for _, row in sorted(data.tasks.items()):
        digest, _ = data.keys.get((row.owner, row.submit_key), ("", ""))
        ask = row.ask
        record = of.TaskRecord(
            row.id,
            row.owner,
            row.session_id,
            str(row.agent),
            row.created_at,
            row.state,
            row.updated_at,
            row.max_attempts,
            row.version,
            row.transitions,
            metadata=row.metadata,
            submit_key=row.submit_key,
            submit_digest=digest,
            retry_of=row.retry_of,
            note=row.note,
            status=row.status,
            status_seq=row.messages[row.status].seq if row.status else None,
            fence=row.fence,
            attempts=row.attempts,
            worker=row.worker,
            lease_expires_at=row.lease_expires_at,
            lease_seconds=row.lease_seconds,
            run_after=row.run_after,
            due_at=None if row.due_at == NEVER else row.due_at,
            cancel_requested=row.cancel_requested,
            pause_requested=row.pause_requested,
            ask_kind=ask.kind if ask else None,
            ask_name=ask.name if ask else None,
            ask_occurrence=ask.occurrence if ask else None,
            ask_form=row.form,
            result=row.result,
            parent_id=row.parent_id,
            awaited=row.awaited,
            waits_for=row.waits_for,
            waits_topic=row.waits_topic,
            priority=row.priority,
            key=row.key,
            copied=row.id not in data.uncopied,
            handler_version=row.handler_version,
            app_version=row.app_version,
        )
        yield of.meaningful(record)


def load_task(engine: InMemory, tenant: str, one: of.TaskRecord) -> None:
    """Store a task, and add it to the queue or list for its state."""
    data = engine.table(tenant, LedgerData)
    context = data.contexts.get((one.owner, one.context_id))
    if context is None:
        raise NotFoundError("context", one.context_id)
    if one.id in data.tasks:
        return
    ask = None
    if one.ask_kind is not None and one.ask_name is not None:
        ask = StepKey(one.ask_name, one.ask_occurrence or 1, one.ask_kind)
    row = TaskRow(
        id=one.id,
        session_id=one.context_id,
        owner=one.owner,
        agent=AgentId.parse(one.agent),
        metadata=one.metadata,
        max_attempts=one.max_attempts,
        submit_key=one.submit_key,
        retry_of=one.retry_of,
        created_at=one.created_at,
        updated_at=one.updated_at,
        state=one.state,
        note=one.note,
        version=one.version,
        fence=one.fence,
        attempts=one.attempts,
        worker=one.worker,
        lease_expires_at=one.lease_expires_at,
        run_after=one.run_after,
        cancel_requested=one.cancel_requested,
        pause_requested=one.pause_requested,
        priority=one.priority,
        key=one.key,
        result=one.result,
        parent_id=one.parent_id,
        status=one.status,
        lease_seconds=one.lease_seconds or 0.0,
        due_at=one.due_at,
        ask=ask,
        form=one.ask_form,
        awaited=one.awaited,
        waits_for=one.waits_for,
        waits_topic=one.waits_topic,
        transitions=one.transitions,
        handler_version=one.handler_version,
        app_version=one.app_version,
    )
    data.tasks[row.id] = row
    context.tasks.append(row.id)
    data.prioritized |= row.priority > 0
    if row.submit_key:
        data.keys[row.owner, row.submit_key] = (one.submit_digest, row.id)
    if not one.copied:
        data.uncopied[row.id] = None
    if row.state is TaskState.SUBMITTED and not row.adopted:
        row.due_at = one.due_at or NEVER
        insort(data.queue, (row.due_at, row.id))
    if row.state is TaskState.WORKING and not row.adopted:
        data.working[row.id] = None
        context.working.add(row.id)


def dump_events(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.TaskEventRecord]:
    """Yield the timelines of all tasks."""
    del at
    data = engine.table(tenant, LedgerData)
    for _, row in sorted(data.tasks.items()):
        context = data.contexts[row.owner, row.session_id]
        places = {key: at for at, (task, key) in enumerate(context.messages, 1) if task == row.id}
        for event in row.events:
            yield _event_record(row, event, places)


def _event_record(row: TaskRow, event: StoredEvent, places: dict[str, int]) -> of.TaskEventRecord:
    head = (row.id, event.seq)
    tail = (event.at, event.by, event.fence, event.by_name)
    match event.body:
        case Transition() as move:
            return of.TaskEventRecord(
                *(*head, "transition", *tail, move.seq, move.from_state, move.to_state),
                *(move.worker, move.attempt, move.run_after, move.note),
                message_id=move.message_id,
                app_version=move.app_version or None,
            )
        case TaskRequest() as request:
            return of.TaskEventRecord(
                *(*head, "request", *tail), note=request.note, request=request.what
            )
        case StoredMessage() as said:
            return of.TaskEventRecord(
                *(*head, "message", *tail),
                message_id=said.id,
                written_at=said.created_at,
                place=places.get(said.id),
                body=said.payload,
            )
        case StoredStep() as step:
            return of.TaskEventRecord(
                *(*head, "step", *tail),
                message_id=row.said[step.key],
                step_kind=step.key.kind,
                step_name=step.key.name,
                step_occurrence=step.key.occurrence,
                started_at=step.started_at,
                chunks=step.chunks,
                digest=step.digest,
                body=step.result,
            )
        case StoredChunk() as chunk:
            key = chunk.step
            return of.TaskEventRecord(
                *(*head, "artifact", *tail),
                step_kind=key.kind if key else None,
                step_name=key.name if key else None,
                step_occurrence=key.occurrence if key else None,
                artifact_id=chunk.artifact_id,
                append=chunk.append,
                last_chunk=chunk.last_chunk,
                name=chunk.name,
                metadata=chunk.metadata,
                body=chunk.parts,
            )


@dataclass
class _Places:
    """The positions of loaded messages, by owner and context."""

    of: dict[tuple[str, str], list[tuple[int, str, str]]] = field(default_factory=dict)


def load_events(engine: InMemory, tenant: str, records: Sequence[of.TaskEventRecord]) -> None:
    """Replay entries of timelines, in order."""
    data, places = engine.table(tenant, LedgerData), engine.table(tenant, _Places).of
    touched: set[tuple[str, str]] = set()
    for one in records:
        row = _task(data, one.task_id)
        if one.seq <= len(row.events):
            continue
        body = _body(one)
        row.events.append(StoredEvent(one.seq, one.at, one.actor, one.fence, body, one.by_name))
        _index(row, one, body)
        if one.kind == "message" and one.place is not None:
            key = (row.owner, row.session_id)
            insort(places.setdefault(key, []), (one.place, row.id, one.message_id or ""))
            touched.add(key)
    for key in touched:
        data.contexts[key].messages[:] = [(task, said) for _, task, said in places[key]]


def _body(one: of.TaskEventRecord) -> StoredBody:
    if one.kind == "transition" and one.to_state is not None:
        return Transition(
            *(one.task_id, one.number or 0, one.from_state, one.to_state, one.at, one.actor),
            worker=one.worker or "",
            fence=one.fence,
            attempt=one.attempt or 0,
            note=one.note or "",
            run_after=one.run_after,
            message_id=one.message_id or "",
            app_version=one.app_version or "",
        )
    if one.kind == "request" and one.request is not None:
        return TaskRequest(one.request, one.note or "")
    body = one.body or ""
    if one.kind == "message":
        return StoredMessage(one.message_id or "", one.written_at or one.at, body, one.seq)
    key = (
        StepKey(one.step_name, one.step_occurrence or 1, one.step_kind or "")
        if (one.step_name is not None)
        else None
    )
    if one.kind == "step" and key is not None:
        return StoredStep(
            key, body, one.at, one.digest or "", one.fence, one.chunks or 0, one.started_at
        )
    return StoredChunk(
        *(one.artifact_id or "", body, bool(one.append), bool(one.last_chunk)),
        *(one.name or "", one.metadata or "{}", key, one.fence),
    )


def _index(row: TaskRow, one: of.TaskEventRecord, body: StoredBody) -> None:
    match body:
        case StoredMessage():
            row.messages[body.id] = body
        case StoredStep():
            row.steps[body.key] = body
            row.said[body.key] = one.message_id or ""
        case StoredChunk():
            held = row.chunks.setdefault(body.artifact_id, [])
            if not body.append:
                held.clear()
            held.append((body, one.at))
            if body.step is not None:
                row.step_chunks.setdefault((body.step, body.fence), []).append(body)


def dump_feedback(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.FeedbackRecord]:
    """Yield the feedback on tasks."""
    del at
    for task_id, row in sorted(engine.table(tenant, LedgerData).tasks.items()):
        for one in row.feedback.values():
            yield of.FeedbackRecord(
                task_id, one.id, one.text, one.metadata, one.created_at, one.rating
            )


def load_feedback(engine: InMemory, tenant: str, one: of.FeedbackRecord) -> None:
    """Store feedback."""
    given = StoredFeedback(one.id, one.text, one.rating, one.metadata, one.created_at)
    _task(engine.table(tenant, LedgerData), one.task_id).feedback.setdefault(one.id, given)


def dump_inbox(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.InboxRecord]:
    """Yield the messages in the inboxes of tasks."""
    del at
    for task_id, row in sorted(engine.table(tenant, LedgerData).tasks.items()):
        for key, one in row.inbox.items():
            yield of.InboxRecord(task_id, key, one.topic, one.body, one.digest, one.received)


def load_inbox(engine: InMemory, tenant: str, one: of.InboxRecord) -> None:
    """Store a message in the inbox of a task."""
    sent = InboxRow(one.topic, one.body, one.digest, one.received)
    _task(engine.table(tenant, LedgerData), one.task_id).inbox.setdefault(one.id, sent)


def dump_push_configs(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.PushConfigRecord]:
    """Yield the push configs."""
    del at
    for task_id, row in sorted(engine.table(tenant, LedgerData).tasks.items()):
        for key, one in sorted(row.push.items()):
            yield of.PushConfigRecord(task_id, key, one.url, one.token, one.authentication)


def load_push_config(engine: InMemory, tenant: str, one: of.PushConfigRecord) -> None:
    """Store a push config."""
    config = StoredPush(one.id, one.url, one.token, one.authentication)
    _task(engine.table(tenant, LedgerData), one.task_id).push.setdefault(one.id, config)


def dump_deliveries(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.DeliveryRecord]:
    """Yield the events that are not yet delivered to push configs."""
    del at
    for (task_id, config), lane in sorted(engine.table(tenant, LedgerData).lanes.items()):
        for seq, one in sorted(lane.items()):
            yield of.DeliveryRecord(
                task_id, config, seq, one.due_at, one.attempts, one.last_error, one.dead
            )


def load_delivery(engine: InMemory, tenant: str, one: of.DeliveryRecord) -> None:
    """Store an event that is not yet delivered to a push config."""
    lane = engine.table(tenant, LedgerData).lanes.setdefault((one.task_id, one.config_id), {})
    delivery = Delivery(new_id(), one.seq, one.due_at, one.attempts, one.last_error, one.dead)
    lane.setdefault(one.seq, delivery)


def dump_cleanup(engine: InMemory, tenant: str, at: datetime) -> Iterator[of.CleanupRecord]:
    """Yield the cleanup marks, also those of deleted tasks."""
    del at
    for task_id, rows in sorted(engine.table(tenant, LedgerData).cleanup.items()):
        for _, row in sorted(rows.items(), key=lambda one: one[0]):
            mark = row.mark
            yield of.CleanupRecord(
                *(task_id, mark.kind, mark.ref, mark.agent, row.owner, row.session_id, row.due_at)
            )


def load_cleanup(engine: InMemory, tenant: str, one: of.CleanupRecord) -> None:
    """Store a cleanup mark."""
    data = engine.table(tenant, LedgerData)
    mark = CleanupMark(one.task_id, one.kind, one.ref, one.agent)
    rows = data.cleanup.setdefault(one.task_id, {})
    rows.setdefault((one.kind, one.ref), MarkRow(mark, one.owner, one.context_id, one.due_at))
    if one.due_at is not None:
        data.cleanup_due[one.task_id] = None


def _task(data: LedgerData, task_id: str) -> TaskRow:
    row = data.tasks.get(task_id)
    if row is None:
        raise NotFoundError("task", task_id)
    return row
