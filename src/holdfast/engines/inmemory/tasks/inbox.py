"""Messages to the running tasks of the in-memory ledger."""

from __future__ import annotations

from typing import Any

from holdfast.engines.inmemory.tasks.client import InMemoryClients
from holdfast.engines.inmemory.tasks.data import InboxRow, TaskRow
from holdfast.spi.tasks.conflicts import has_ended, inbox_full, other_body
from holdfast.spi.tasks.inbox import InboxMessage, InboxStorage
from holdfast.spi.tasks.records import TaskKey
from holdfast.spi.tasks.stored import StoredStep
from holdfast.spi.tasks.workers import StepDraft
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.lifecycle import TERMINAL, Actor
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease


class InMemoryInbox(InMemoryClients, InboxStorage):
    """Stores the messages that running tasks receive."""

    async def send(self, key: TaskKey, message: InboxMessage, limit: int) -> None:
        """Store a message, unless it is stored already. Wake the task if it waits for it."""
        row = self._steered(*key)
        known = row.inbox.get(message.id)
        if known is not None:
            if known.digest != message.digest:
                raise other_body("message", message.id)
            return
        if row.state in TERMINAL:
            raise has_ended(row.id)
        if sum(not one.received for one in row.inbox.values()) >= limit:
            raise inbox_full(row.id, limit)
        row.inbox[message.id] = InboxRow(message.topic, message.body, message.digest)
        if row.waits_topic == message.topic:
            self._make_due(row)

    async def receive(
        self, lease: Lease, step: StepKey, topic: str, *, last: bool
    ) -> StoredStep | None:
        """Store the oldest message of a topic as the result of a step, or return ``None``."""
        row = self._held(lease)
        if step not in row.steps:
            found = self._oldest(row, topic)
            if found is None and not last:
                return None
            result: dict[str, Any] = {"id": None, "message": None}
            if found is not None:
                result = {"id": found, "message": decode_json(row.inbox[found].body)}
                row.inbox[found].received = True
            self._keep(row, StepDraft(step, encode_json(result), "", ""), Actor.WORKER)
        return row.steps[step]

    def _oldest(self, row: TaskRow, topic: str) -> str | None:
        waiting = row.next_in_inbox(topic)
        return next((key for key, one in row.inbox.items() if one is waiting), None)
