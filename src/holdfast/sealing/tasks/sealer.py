"""Encrypts (seals) what a ledger stores, with the data key of the task's owner.

Forks and retries copy messages, steps, artifacts and metadata into other tasks of the same owner,
so the encryption binds these to their ids within the task, not to the id of the task.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from holdfast.sealing.blind import Blind
from holdfast.sealing.cipher import Place
from holdfast.sealing.seal import Seal, Sealer
from holdfast.spi.tasks.adopted import StoredReport, StoredStatus
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.inbox import InboxMessage
from holdfast.spi.tasks.stored import StoredChunk, StoredFeedback, StoredMessage, StoredPush
from holdfast.spi.tasks.workers import Outcome, StepDraft
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.sealed import SEALED, SEALED_TEXT, check_parts, check_unsealed
from holdfast.values.tasks.events import HISTORY, StepKey

FIRST = "first"
"""Marks the message that a task begins with: a retry copies it under another id."""

NAMED = "named"
"""Marks a step whose name is encrypted with its result."""

ANSWER = "answer"
"""Marks a step that is the answer to a question."""


@dataclass(frozen=True, slots=True)
class TaskSealer:
    """Encrypts the values of the tasks of one owner.

    With ``as_before`` it makes the digests of unencrypted values, to find what was stored before
    encryption was turned on.
    """

    sealer: Sealer
    blind: Blind
    as_before: bool = False

    def message(self, message: StoredMessage, *, first: bool = False) -> StoredMessage:
        """Encrypt a message; its role stays as it is."""
        digest = message.digest()
        return message._replace(
            payload=self.payload(message.payload, digest, "" if first else message.id, first=first)
        )

    def payload(self, payload: str, digest: str, id: str = "", *, first: bool = True) -> str:
        """Encrypt the payload of a message."""
        box = self.sealer.box(message_place(id, first=first), payload)
        mark = f" {FIRST}" if first else ""
        text = f"{SEALED_TEXT}{box} {self.digest('message', digest)}{mark}"
        role = decode_json(payload)["role"]
        block = {"type": "text", "text": text}
        return encode_json({"v": 1, "role": role, "content": [block]})

    def draft(self, draft: Draft) -> Draft:
        """Encrypt a task that is to be stored."""
        identity = draft.digest()
        if identity:
            identity = self.digest("draft", draft.submit_key, identity)
        return dataclasses.replace(
            draft,
            message=self.message(draft.message, first=True),
            metadata=self.metadata(draft.metadata),
            push=tuple(self.push(draft.id, one) for one in draft.push),
            identity=identity,
        )

    def metadata(self, metadata: str) -> str:
        """Encrypt the metadata of a task; empty metadata stays as it is."""
        return metadata if metadata == "{}" else self.sealer.json(METADATA, metadata)

    def note(self, note: str) -> str:
        """Encrypt a note; an engine may put a reason before it."""
        return self.sealer.text(NOTE, note)

    def step(self, step: StepDraft) -> StepDraft:
        """Encrypt a step with the digest of its arguments.

        The name of an append to a transcript is a digest of the content: it is encrypted with the
        result, and replaced by a keyed digest.
        """
        key = step.key
        if key.kind != HISTORY:
            sealed = self.sealer.json(step_place(key), step.result)
            return self.step_digest(step)._replace(result=sealed)
        other = StepKey(self.blind.digest("name", key.name), key.occurrence, key.kind)
        content = encode_json([key.name, step.result])
        return self.step_digest(step._replace(key=other))._replace(
            key=other, result=self.sealer.json(step_place(other), content, {NAMED: True})
        )

    def step_digest(self, step: StepDraft) -> StepDraft:
        """Encrypt the digest of a step's arguments; equal digests give equal results."""
        if self.as_before:
            return step
        digest = self.sealer.text(digest_place(step.key), step.digest, again=True)
        return step._replace(digest=digest)

    def answer(self, result: str) -> str:
        """Encrypt the step that an answer is stored as."""
        return self.sealer.json(ANSWERED, result, {ANSWER: True})

    def form(self, form: str | None) -> str | None:
        """Encrypt the form of a question; equal forms of an owner give equal results."""
        return form and self.sealer.json(FORM, form, again=True)

    def chunk(self, chunk: StoredChunk) -> StoredChunk:
        """Encrypt a chunk of an artifact with its name and metadata."""
        content = encode_json([chunk.name, decode_json(chunk.metadata), chunk.parts])
        box = self.sealer.box(chunk_place(chunk.artifact_id), content)
        parts = encode_json([{"type": "text", "text": f"{SEALED_TEXT}{box}"}])
        return dataclasses.replace(chunk, parts=parts, name="", metadata="{}")

    def outcome(self, outcome: Outcome) -> Outcome:
        """Encrypt what a worker reports."""
        said, result = outcome.message, outcome.result
        return outcome._replace(
            message=None if said is None else self.message(said),
            note=self.note(outcome.note),
            form=self.form(outcome.form),
            result=None if result is None else self.sealer.json(RESULT, result),
        )

    def push(self, task_id: str, config: StoredPush) -> StoredPush:
        """Encrypt a push config with its secrets."""
        return dataclasses.replace(
            config,
            url=self.sealer.text(push_place(task_id, config.id, "url"), config.url),
            token=self.sealer.text(push_place(task_id, config.id, "token"), config.token),
            authentication=self.sealer.json(
                push_place(task_id, config.id, "authentication"), config.authentication
            ),
        )

    def error(self, error: str) -> str:
        """Encrypt the error of a delivery."""
        return self.sealer.text(ERROR, error)

    def feedback(self, task_id: str, feedback: StoredFeedback) -> StoredFeedback:
        """Encrypt feedback with its metadata; the rating stays as it is."""
        content = encode_json([feedback.text, decode_json(feedback.metadata)])
        box = self.sealer.box(feedback_place(task_id, feedback.id), content)
        digest = self.digest("feedback", feedback.digest())
        return dataclasses.replace(feedback, text=f"{SEALED_TEXT}{box} {digest}", metadata="{}")

    def inbox(self, message: InboxMessage) -> InboxMessage:
        """Encrypt a message to a running task."""
        return message._replace(
            body=self.sealer.json(inbox_place(message.id), message.body),
            digest=self.digest("inbox", message.digest),
        )

    def report(self, report: StoredReport) -> StoredReport:
        """Encrypt a report on a task that another system runs."""
        match report:
            case StoredMessage():
                return self.message(report)
            case StoredChunk():
                return self.chunk(report)
            case StoredStatus():
                said, metadata = report.message, report.metadata
                return report._replace(
                    message=None if said is None else self.message(said),
                    note=self.note(report.note),
                    metadata=None if metadata is None else self.metadata(metadata),
                )

    def digest(self, kind: str, *parts: str) -> str:
        """Return the digest by which a retry is recognised."""
        return parts[-1] if self.as_before else self.blind.digest(kind, *parts, "")


METADATA = Place("task", "", "metadata")
NOTE = Place("task", "", "note")
RESULT = Place("task", "", "result")
FORM = Place("task", "", "form")
ANSWERED = Place("task", "", "answer")
ERROR = Place("task", "", "delivery error")


def message_place(id: str, *, first: bool) -> Place:
    """Return the place of a message.

    >>> message_place("m1", first=False)
    Place(store='task', id='m1', field='message')
    """
    return Place("task", "", "first message") if first else Place("task", id, "message")


def step_place(key: StepKey) -> Place:
    """Return the place of a step.

    >>> step_place(StepKey("fetch")).id
    'step:fetch:1'
    """
    return Place("task", str(key), "step")


def digest_place(key: StepKey) -> Place:
    """Return the place of the digest of a step's arguments.

    >>> digest_place(StepKey("fetch")).field
    'digest'
    """
    return Place("task", str(key), "digest")


def chunk_place(artifact_id: str) -> Place:
    """Return the place of a chunk of an artifact.

    >>> chunk_place("a1").field
    'artifact'
    """
    return Place("task", artifact_id, "artifact")


def inbox_place(message_id: str) -> Place:
    """Return the place of a message to a running task.

    >>> inbox_place("m1").field
    'inbox'
    """
    return Place("task", message_id, "inbox")


def push_place(task_id: str, config_id: str, field: str) -> Place:
    """Return the place of a field of a push config.

    >>> push_place("t1", "p1", "url").field
    'push p1 url'
    """
    return Place("task", task_id, f"push {config_id} {field}")


def feedback_place(task_id: str, feedback_id: str) -> Place:
    """Return the place of feedback.

    >>> feedback_place("t1", "f1").field
    'feedback f1'
    """
    return Place("task", task_id, f"feedback {feedback_id}")


async def task_sealer(seal: Seal, owner: str, *, as_before: bool = False) -> TaskSealer | None:
    """Return the object that encrypts the tasks of an owner; ``None`` without keys.

    ::

        sealer = await task_sealer(seal, "ana")
    """
    sealer, blind = await seal.sealer(owner), await seal.blind()
    if sealer is None or blind is None:
        return None
    return TaskSealer(sealer, blind, as_before)


def plain_note(note: str) -> str:
    """Return a note to store unencrypted, changed if it looks like an encrypted one.

    A note may be the text of an error, so it is never refused.

    >>> plain_note("cannot read holdfast.sealed:AQ")
    'cannot read holdfast.sealed :AQ'
    """
    return note.replace(SEALED_TEXT, f"{SEALED} :")


def check_message(message: StoredMessage | None) -> None:
    """Raise if a message of a caller looks like an encrypted one.

    ::

        check_message(draft.message)
    """
    if message is not None:
        check_parts("message", message.payload)


def check_draft(draft: Draft) -> None:
    """Raise if a task of a caller looks like an encrypted one.

    ::

        check_draft(draft)
    """
    check_message(draft.message)
    check_unsealed("metadata", draft.metadata)
    for one in draft.push:
        check_push(one)


def check_push(config: StoredPush) -> None:
    """Raise if a push config of a caller looks like an encrypted one.

    ::

        check_push(config)
    """
    check_unsealed("push.token", config.token)
    check_unsealed("push.authentication", config.authentication)


def check_chunk(chunk: StoredChunk) -> None:
    """Raise if a chunk of a caller looks like an encrypted one.

    ::

        check_chunk(chunk)
    """
    check_parts("parts", chunk.parts)
    check_unsealed("metadata", chunk.metadata)


def check_report(report: StoredReport) -> StoredReport:
    """Return a report to store unencrypted; raise if it looks like an encrypted one.

    ::

        reports = [check_report(one) for one in reports]
    """
    match report:
        case StoredMessage():
            check_message(report)
        case StoredChunk():
            check_chunk(report)
        case StoredStatus():
            check_message(report.message)
            check_unsealed("metadata", report.metadata or "")
            return report._replace(note=plain_note(report.note))
    return report
