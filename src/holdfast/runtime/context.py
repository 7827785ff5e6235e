"""What a handler sees of its task."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from holdfast.contracts.agent_memory import AgentMemory
from holdfast.contracts.history import HistoryRetention
from holdfast.contracts.working_memory import WorkingMemory
from holdfast.runtime.cleanup import Cleanup
from holdfast.runtime.content import to_blocks, to_message
from holdfast.runtime.journal import HISTORY, Journal, arguments_digest, check_digest
from holdfast.runtime.offload import load, offload
from holdfast.runtime.outcome import Reply, Suspended
from holdfast.runtime.running_task import RunningTask
from holdfast.runtime.session import TaskHistory
from holdfast.runtime.stores import HandlerStores, TaskStores
from holdfast.runtime.task_facts import TaskFacts
from holdfast.values.checks import check_seconds, check_time
from holdfast.values.content import ChatMessage, ContentBlock
from holdfast.values.errors import ConfigError, InvalidInputError
from holdfast.values.lifecycle import TaskState
from holdfast.values.owners import MemoryScope, owned_id
from holdfast.values.tasks.events import ArtifactChunk, StepKey, StepRecord
from holdfast.values.tasks.records import TaskRecord, content_digest

_current: ContextVar[StepKey | None] = ContextVar("holdfast_step", default=None)


class TaskContext(TaskFacts):
    """A task in the hands of its handler.

    A handler may be run again from the start at any time, after a crash, an answer or a pause; what
    is stored by ``step``, ``ask``, ``say``, ``sleep`` and ``history.append`` is not done again. So
    a handler takes the same steps in the same order on every run, and does whatever is not
    repeatable inside of one. ::

        @app.handler
        async def research(task: holdfast.TaskContext) -> None:
            pages = await task.step("fetch", fetch, task.message.text)
            scope = await task.ask("Which chapter matters?")
            await task.artifact("summary.md", await summarise(pages, scope.text))
            await task.say("Done")
    """

    def __init__(
        self,
        stores: TaskStores,
        record: TaskRecord,
        held: RunningTask,
        journal: Journal,
        *,
        retention: HistoryRetention = HistoryRetention.PERMANENT,
        memory: MemoryScope = "owner",
        said: Callable[[ChatMessage], Awaitable[None]] | None = None,
        resources: Any = None,
    ) -> None:
        super().__init__(stores, record, held)
        self._owned = stores.for_owner(record.owner, memory=memory)
        self._journal = journal
        self._said = said
        self._wrote = len(record.messages) > 1
        # By the ids that are stored: a clean-up may be done by whoever comes first.
        agent = (
            str(record.agent) if memory == "shared" else owned_id(record.owner, str(record.agent))
        )
        session = owned_id(record.owner, record.context_id)
        self.cleanup = Cleanup(stores, held, agent, session)
        self.state = WorkingMemory(self._owned.short_term, record.context_id)
        """The working state of the task's context.

        ::

            await task.state.update({"page": 2})
            page = (await task.state.get())["page"]
        """
        self.history = TaskHistory(
            self._owned.history, record, retention, self.cleanup, self._keep_ids
        )
        """The agent's transcript in this context, each message marked with this task's run.

        A message is appended once: a later run that builds it again, with a new id, adds nothing.
        One with another content is another message: take what varies from a step. ::

            await task.history.append(ChatMessage.assistant("thinking"))
            window = await task.history.messages(limit=20)
        """
        self.stores = HandlerStores(self._owned)
        """Every store of the task's tenant and owner.

        A handler may run again: write with an id of its own, or inside of a step. ::

            board = await task.stores.boards.get_by_conversation(task.context_id)
            await task.stores.channel("alerts").publish({"reading": len(pages)}, id=task.id)
        """
        self.resources = resources
        """What the app's ``lifespan`` has yielded; ``None`` without one.

        ::

            client = task.resources
        """
        self.log = logging.LoggerAdapter(
            logging.getLogger("holdfast.handler"),
            {"task": record.id, "tenant": stores.tenant, "agent": str(record.agent)},
        )
        """A logger whose records name the task, its tenant and its agent.

        ::

            task.log.info("read %d pages", len(pages))
        """

    def resume(self, journal: Journal) -> None:
        """Go on with what earlier runs stored; the worker calls it before the handler."""
        self._journal = journal

    @property
    def memory(self) -> AgentMemory:
        """The agent's memory of the task's owner, with the task's context as its session.

        A handler may run again: record with an ``event_id``, or inside of a step. ::

            woken = await task.memory.hydrate(task.message.text)
            await task.memory.record("decision", {"use": "postgres"}, event_id=f"{task.id}:db")
        """
        return self._owned.memory(self.agent, session_id=self.context_id)

    @property
    def idempotency_key(self) -> str:
        """A key for an outside service, so that it performs the effect of this step once.

        ::

            async def pay(amount: int) -> str:
                return await bank.pay(amount, key=task.idempotency_key)


            receipt = await task.step("pay", pay, 100)
        """
        key = _current.get()
        if key is None:
            raise ConfigError("there is an idempotency key only inside of a step: use task.step()")
        return f"{self.id}:{key}"

    async def step(
        self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        """Return ``function(*args, **kwargs)``, which never runs again once its result is stored.

        It may be a coroutine function, or a plain one, which runs in a thread. What it returns must
        be JSON; a large result is kept as a blob. The same step with other arguments on a later run
        is a ``ConflictError``. ::

            pages = await task.step("fetch", fetch, "https://example.org")
        """
        if not callable(function):
            raise _not_a_function(name, function)
        key = await self._next("step", name)
        digest = arguments_digest(args, kwargs)
        ledger, blobs = self._stores.tasks, self._stores.blobs
        if stored := self._journal.find(key):
            check_digest(stored, digest)
            if stored.chunks and stored.fence != self._held.lease.fence:
                await ledger.restore_artifacts(self._held.lease, key)
            return await load(blobs, stored.result)
        token = _current.set(key)
        try:
            result = await _call(function, args, kwargs)
        finally:
            _current.reset(token)
        packed = await offload(blobs, result, field=f"result of {key}", mark=self.cleanup.of_blob)
        kept = await ledger.record_step(self._held.lease, key, packed, digest=digest)
        self._journal.keep(kept)
        return await load(blobs, kept.result)

    async def ask(
        self,
        question: str | dict[str, Any] | ChatMessage | ContentBlock | Sequence[ContentBlock],
        *,
        name: str = "ask",
        auth: bool = False,
    ) -> ChatMessage:
        """Ask the client a question and return the answer.

        The call ends this run of the handler. The task is ``input-required``, or ``auth-required``
        with ``auth`` where the answer is a credential, and no worker holds it. When the answer has
        come, any worker runs the handler again, and the call returns. ::

            scope = await task.ask("Which chapter matters?")
            await task.say(f"reading {scope.text}")
        """
        key = await self._next("ask", name)
        if stored := self._journal.find(key):
            wanted = stored.result["message_id"]
            return next(one for one in self._record.messages if one.id == wanted)
        to = TaskState.AUTH_REQUIRED if auth else TaskState.INPUT_REQUIRED
        return await self._suspend(to, message=to_message(question), ask=key)

    async def say(
        self,
        content: str | dict[str, Any] | ChatMessage | ContentBlock | Sequence[ContentBlock],
        *,
        name: str = "say",
    ) -> ChatMessage:
        """Add a message to the task, once: a later run returns the stored one.

        ::

            await task.say("half way")
        """
        key = await self._next("say", name)
        message = await self._stores.tasks.append_message(
            self._held.lease, to_message(content), step=key
        )
        if self._said is not None:
            await self._said(message)
        return message

    async def artifact(
        self,
        name: str,
        content: str | bytes | dict[str, Any] | ContentBlock | Sequence[ContentBlock],
        *,
        append: bool = False,
        last: bool = False,
        media_type: str = "",
        metadata: dict[str, Any] | None = None,
    ) -> ArtifactChunk:
        """Write a piece of what the task produces; without ``append`` it replaces what was there.

        Pieces written outside of a step belong to this run: a later run starts the artifact again.
        ::

            async for chunk in summarise(pages):
                await task.artifact("summary.md", chunk, append=True)
        """
        await self._pause_if_asked()
        self._wrote = True
        parts = await to_blocks(
            content,
            name=name,
            media_type=media_type,
            blobs=self._stores.blobs,
            mark=self.cleanup.of_file,
        )
        return await self._stores.tasks.append_artifact(
            self._held.lease,
            name,
            parts,
            name=name,
            metadata=metadata,
            append=append,
            last_chunk=last,
            step=_current.get(),
        )

    def reply(
        self, content: str | dict[str, Any] | ChatMessage | ContentBlock | Sequence[ContentBlock]
    ) -> Reply:
        """Answer with a message instead of a task: return the result of this call.

        A client that sends and waits gets a message, and no task to follow. The ledger has the task
        all the same: ``completed``, with the message. After ``step``, ``ask``, ``say``, ``sleep``
        or ``artifact`` it raises ``ConfigError``: the client may have seen the task by then. ::

            @app.handler
            async def chat(task: holdfast.TaskContext) -> holdfast.Reply | str:
                if task.message.text == "ping":
                    return task.reply("pong")
                return await task.step("answer", answer, task.message.text)
        """
        self.check_reply()
        return Reply(to_message(content))

    def check_reply(self, *, shown: bool = False) -> None:
        """Refuse a reply of a task that has done anything else; the worker calls it at the end.

        ``shown``: the task has artifacts. ::

            task.check_reply()
        """
        if shown or self._wrote or self._journal:
            raise ConfigError(
                "task.reply() is for a handler that has done nothing else: use it before any step, "
                "ask, say, sleep or artifact, or return the message without it"
            )

    async def sleep(self, seconds: float, *, name: str = "sleep") -> None:
        """Suspend the task. No worker holds it meanwhile, and it survives any restart.

        ::

            await task.sleep(3600)
        """
        later = datetime.now(UTC) + timedelta(seconds=check_seconds("seconds", seconds))
        await self.sleep_until(later, name=name)

    async def sleep_until(self, when: datetime, *, name: str = "sleep") -> None:
        """Suspend the task until a time; later runs use the time that the first run gave.

        ::

            await task.sleep_until(datetime(2030, 1, 1, tzinfo=UTC))
        """
        key = await self._next("sleep", name)
        check_time("when", when)
        stored = await self._keep(key, when.astimezone(UTC).isoformat())
        until = datetime.fromisoformat(stored.result)
        # The ledger's clock decided that it is due; a second of difference to ours is no reason to
        # go back to sleep.
        if until > datetime.now(UTC) + timedelta(seconds=1 if stored.fence < self.fence else 0):
            await self._suspend(TaskState.SUBMITTED, run_after=until, progress=True)

    async def _keep_ids(self, contents: list[str], ids: list[str]) -> list[str]:
        """The ids under which the first run appended these contents, also inside of a step.

        The key is made of the contents and not of their number: an append that a later run leaves
        out, since the transcript has it, must not stand for the next one.
        """
        inside = _current.get()
        name = content_digest([str(inside or ""), *contents])
        key = self._journal.next_key(HISTORY, name) if inside else await self._next(HISTORY, name)
        kept: list[str] = (await self._keep(key, ids)).result
        return kept

    async def _keep(self, key: StepKey, result: Any) -> StepRecord:
        """Store the result of a step, unless an earlier run has; what is stored."""
        stored = self._journal.find(key)
        if stored is None:
            stored = await self._stores.tasks.record_step(self._held.lease, key, result)
            self._journal.keep(stored)
        return stored

    async def _next(self, kind: str, name: str) -> StepKey:
        if _current.get() is not None:
            raise InvalidInputError(
                name, f"a {kind} cannot begin inside of a step: do it before or after"
            )
        await self._pause_if_asked()
        return self._journal.next_key(kind, name)

    async def _pause_if_asked(self) -> None:
        if self._held.lease.pause_requested:
            await self._suspend(TaskState.PAUSED)

    async def _suspend(self, to: TaskState, **options: Any) -> NoReturn:
        with self._held.leaving():
            gone = await self._stores.tasks.transition(self._held.lease, to, **options)
        raise Suspended(gone.state)


def _not_a_function(name: str, given: object) -> InvalidInputError:
    """What a step is refused with that got a result, or a coroutine, instead of a function."""
    if inspect.iscoroutine(given):
        # It will never run: without this Python would complain of it later.
        given.close()
        return InvalidInputError(
            name, f'must be a function, not its coroutine: task.step("{name}", f, …), without f()'
        )
    kind = type(given).__name__
    return InvalidInputError(name, f"must be a function that the step calls, not {kind}")


async def _call(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    result = await asyncio.to_thread(function, *args, **kwargs)
    # A lambda around a coroutine function is a plain function too.
    return await result if inspect.isawaitable(result) else result
