"""Converts a saved task or event of the SDK to the reports that the ledger stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError

from holdfast.adapters.a2a.messages import (
    KEPT,
    from_artifact,
    from_message,
    history_of,
    kept_of,
    plain,
    to_blocks,
    to_message,
    to_status,
)
from holdfast.adapters.keys import id_of
from holdfast.values.content import ChatMessage
from holdfast.values.ids import new_id
from holdfast.values.tasks.events import ArtifactChunk
from holdfast.values.tasks.records import TaskRecord
from holdfast.values.tasks.reports import Report, StatusReport


def metadata_of(task: pb.Task, history: Any = None) -> dict[str, Any]:
    """Return the metadata of a task for the ledger.

    ``history`` is stored with it if given: the messages that the task's history consists of.
    """
    kept: dict[str, Any] = {}
    if task.HasField("metadata"):
        kept["metadata"] = plain(task.metadata)
    if id_of(task.context_id) != task.context_id or not task.context_id:
        kept["context"] = task.context_id
    if history is not None:
        kept["history"] = history
    return {KEPT: kept} if kept else {}


def chosen_history(stored: TaskRecord | None) -> Any:
    """Return the history that a client has set for a stored task; ``None`` if none was set."""
    return stored.metadata.get(KEPT, {}).get("history") if stored else None


def of_status(
    event: pb.TaskStatusUpdateEvent, task: pb.Task, stored: TaskRecord | None = None
) -> list[Report]:
    """Return the report of a status event; ``task`` is the task after it.

    ``stored`` is the task before it, needed if the event has metadata.
    """
    said = to_message(event.status.message) if event.status.HasField("message") else None
    extra = {"event": plain(event.metadata)} if event.HasField("metadata") else {}
    report = to_status(event.status, said, context=event.context_id, **extra)
    if extra:
        report = replace(report, metadata=metadata_of(task, chosen_history(stored)))
    return [report]


def of_artifact(event: pb.TaskArtifactUpdateEvent, task: pb.Task) -> list[Report]:
    """Return the report of an artifact event; ``task`` is the task after it."""
    own = event.artifact.artifact_id
    whole = next((one for one in task.artifacts if one.artifact_id == own), event.artifact)
    kept = plain(event)
    parts = kept["artifact"].pop("parts", [])
    return [
        ArtifactChunk(
            id_of(own),
            to_blocks(parts),
            append=event.append,
            last_chunk=event.last_chunk,
            name=whole.name,
            metadata={KEPT: kept_of(whole), "event": kept},
        )
    ]


def of_task(task: pb.Task, stored: TaskRecord | None) -> list[Report]:
    """Return the reports that make the stored task equal to ``task``; without ``stored`` it is new.

    The last report is the status. It is the only one if nothing else differs.
    """
    known = list(stored.messages) if stored else []
    taken = {one.id for one in known}
    finding = _Finding(known)
    history = [finding.find(one) for one in task.history]
    fresh = [one for one in history if one.id not in taken]
    said = finding.find(task.status.message) if task.status.HasField("message") else None
    version = stored.version if stored else 1
    chosen = chosen_history(stored)
    new = fresh if said is None or said.id in taken else [*fresh, said]
    after = [*known, *(replace(one, seq=version + at) for at, one in enumerate(new, 1))]
    found = history_of(after, "" if said is None else said.id, chosen)
    if [one.id for one in found] != [one.id for one in history]:
        chosen = {"until": version + len(fresh), "ids": [one.id for one in history]}
        # The message of the status gets a new id, so that it is stored after the messages above.
        said = None if said is None else to_message(task.status.message, id=new_id())
    absent = {} if task.HasField("status") else {"absent": True}
    metadata = metadata_of(task, chosen)
    # The task's fields are also stored in the timeline, where later reports do not change them.
    report = to_status(task.status, said, task=metadata.get(KEPT) or True, **absent)
    if stored is None or metadata != stored.metadata:
        report = replace(report, metadata=metadata)
    return [*fresh, *_artifacts(task, stored), report]


def is_change(reports: Sequence[Report], stored: TaskRecord) -> bool:
    """Return whether the reports that ``of_task`` returned would change the stored task."""
    [*others, last] = reports
    assert isinstance(last, StatusReport)  # noqa: S101 - for the type checker
    status = stored.status_message.id if stored.status_message else ""
    same = (stored.state, stored.note, status) == (
        *(last.state, last.note),
        last.message.id if last.message else "",
    )
    return bool(others) or not same or last.metadata is not None


class _Finding:
    """Finds SDK messages among the stored ones. Each stored message is found at most once."""

    def __init__(self, known: Sequence[ChatMessage]) -> None:
        self._left = [(one, from_message(one)) for one in known]
        self._taken = {one.id for one in known}

    def find(self, message: pb.Message) -> ChatMessage:
        """Return the stored message that equals this one, or a new message with an unused id."""
        wanted = plain(message)
        for at, (stored, kept) in enumerate(self._left):
            if kept == wanted:
                del self._left[at]
                return stored
        own = id_of(message.message_id) if message.message_id else new_id()
        made = to_message(message, id=new_id() if own in self._taken else own)
        self._taken.add(made.id)
        return made


def _artifacts(task: pb.Task, stored: TaskRecord | None) -> list[Report]:
    """Return a report for each artifact that is new or differs, with all of its parts.

    Raises ``InvalidParamsError`` if ``task`` lacks a stored artifact or has another order.
    """
    before = {one.id: from_artifact(one) for one in stored.artifacts} if stored else {}
    names = [id_of(one.artifact_id) for one in task.artifacts]
    if names[: len(before)] != list(before) or len({*names}) < len(names):
        raise InvalidParamsError(
            message=f"artifacts of task {task.id!r}: a stored task can get more artifacts and "
            "others in their place, but not fewer, nor in another order, nor two of one id"
        )
    return [
        ArtifactChunk(
            name,
            to_blocks(plain(one).get("parts", [])),
            name=one.name,
            metadata={KEPT: kept_of(one)},
        )
        for name, one in zip(names, task.artifacts, strict=True)
        if before.get(name) != plain(one)
    ]
