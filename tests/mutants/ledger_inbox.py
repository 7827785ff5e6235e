from __future__ import annotations

from holdfast.engines.inmemory.tasks.data import TaskRow
from holdfast.engines.inmemory.tasks.ledger import InMemoryLedger
from holdfast.spi.tasks.inbox import InboxMessage
from holdfast.spi.tasks.records import TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import StoredMessage, StoredStep
from holdfast.values.errors import LeaseLostError
from holdfast.values.tasks.events import StepKey
from holdfast.values.tasks.records import Lease
from tests.mutants.registry import mutant


@mutant(
    "tasks",
    "test_a_message_is_received_once",
    "test_messages_of_a_topic_are_received_in_the_order_they_were_sent",
)
class MessageIsReceivedTwice(InMemoryLedger):
    """A message stays in the inbox after it was received."""

    async def receive(
        self, lease: Lease, step: StepKey, topic: str, *, last: bool
    ) -> StoredStep | None:
        found = await super().receive(lease, step, topic, last=last)
        for one in self._held(lease).inbox.values():
            one.received = False
        return found


@mutant(
    "tasks",
    "test_a_message_that_was_received_under_a_step_key_comes_again_under_that_key",
)
class ReceivedMessageIsLost(InMemoryLedger):
    """A message is taken out before the step is stored: a handler that runs again misses it."""

    async def receive(
        self, lease: Lease, step: StepKey, topic: str, *, last: bool
    ) -> StoredStep | None:
        self._held(lease).steps.pop(step, None)
        return await super().receive(lease, step, topic, last=last)


@mutant("tasks", "test_a_stale_worker_receives_nothing")
class StaleWorkerReceives(InMemoryLedger):
    """Whoever names a working task takes its messages."""

    async def receive(
        self, lease: Lease, step: StepKey, topic: str, *, last: bool
    ) -> StoredStep | None:
        row = self._data.tasks.get(lease.task_id)
        if row is None:
            raise LeaseLostError("task", lease.task_id)
        now = Lease(row.id, row.fence, row.worker, lease.expires_at)
        return await super().receive(now, step, topic, last=last)


@mutant(
    "tasks",
    "test_a_task_that_waits_for_a_topic_is_due_when_a_message_of_it_is_sent",
    "test_a_message_that_races_the_wait_for_it_is_not_lost",
)
class MessageWakesNobody(InMemoryLedger):
    """A task that waits for a message is not told of it."""

    def _make_due(self, row: TaskRow) -> None:
        """Leave it where it is."""


@mutant("tasks", "test_the_same_message_id_twice_is_sent_once")
class MessageIsSentTwice(InMemoryLedger):
    """The id of a message is not looked at."""

    async def send(self, key: TaskKey, message: InboxMessage, limit: int) -> None:
        row = self._find(*key)
        if row is not None and message.id in row.inbox:
            message = message._replace(id=f"{message.id} {len(row.inbox)}")
        await super().send(key, message, limit)


@mutant(
    "tasks",
    "test_an_answer_that_is_none_of_the_options_is_refused_and_the_task_waits_on",
    "test_an_answer_that_does_not_fit_the_schema_is_refused_by_its_path_and_the_task_waits_on",
)
class AnswerIsNotChecked(InMemoryLedger):
    """Any answer is taken, whatever the options or the schema of the question are."""

    async def respond(
        self,
        key: TaskKey,
        answer: StoredMessage,
        result: str,
        form: str | None,
        by: str = "",
    ) -> TaskSnapshot | str:
        row = self._find(*key)
        if row is not None:
            row.form = None
        return await super().respond(key, answer, result, form, by)
