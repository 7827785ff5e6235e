"""The object that a handler works with: its task, its stores, and durable steps."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, overload

from holdfast.contracts.agent_memory import AgentMemory
from holdfast.contracts.history import HistoryRetention
from holdfast.contracts.working_memory import WorkingMemory
from holdfast.runtime.cleanup import Cleanup
from holdfast.runtime.content import to_blocks, to_message
from holdfast.runtime.inbox import TaskInbox
from holdfast.runtime.journal import Journal
from holdfast.runtime.outcome import Reply
from holdfast.runtime.running_task import RunningTask
from holdfast.runtime.session import TaskHistory
from holdfast.runtime.steps import current_step
from holdfast.runtime.stores import HandlerStores, TaskStores
from holdfast.runtime.typed_answers import schema_of, typed_answer
from holdfast.values.checks import check_seconds, check_time
from holdfast.values.content import ChatMessage, ContentBlock
from holdfast.values.errors import ConfigError
from holdfast.values.lifecycle import TaskState
from holdfast.values.owners import MemoryScope, owned_id
from holdfast.values.tasks.events import HISTORY, ArtifactChunk
from holdfast.values.tasks.records import TaskRecord, content_digest

T = TypeVar("T")


class TaskContext(TaskInbox):
    """A task as its handler uses it.

    A worker may run a handler again from the start at any time: after a crash, an answer or a
    pause. ``step``, ``ask``, ``say``, ``sleep`` and ``history.append`` store their results and are
    not repeated. So a handler must take the same steps in the same order on every run, and put
    everything that must not be repeated into a step. ::

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
        super().__init__(stores, record, held, journal)
        self._owned = stores.for_owner(record.owner, memory=memory)
        self._said = said
        self._wrote = len(record.messages) > 1
        # Ids as they are stored, with the owner: a sweep without owner may do this cleanup.
        agent = (
            str(record.agent) if memory == "shared" else owned_id(record.owner, str(record.agent))
        )
        session = owned_id(record.owner, record.session_id)
        self.cleanup = Cleanup(stores, held, agent, session)
        self.state = WorkingMemory(self._owned.short_term, record.session_id)
        """The working state of the task's context.

        ::

            await task.state.update({"page": 2})
            page = (await task.state.get())["page"]
        """
        self.history = TaskHistory(
            self._owned.history, record, retention, self.cleanup, self._keep_ids
        )
        """The agent's transcript in this context; this task's messages have its id as ``run_id``.

        A message is appended once: a later run that appends the same content under a new id adds
        nothing. Different content is a different message, so take values that vary between runs
        from a step. ::

            await task.history.append(ChatMessage.assistant("thinking"))
            window = await task.history.messages(limit=20)
        """
        self.stores = HandlerStores(self._owned)
        """Every store of the task's tenant and owner.

        A handler may run again: write with an explicit id, or inside a step. ::

            board = await task.stores.boards.get_by_conversation(task.session_id)
            await task.stores.channel("alerts").publish({"reading": len(pages)}, id=task.id)
        """
        self.resources = resources
        """The value that the app's ``lifespan`` yielded; ``None`` without one.

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

    @property
    def memory(self) -> AgentMemory:
        """The agent's memory of the task's owner, with the task's context as its session.

        A handler may run again: record with an ``event_id``, or inside a step. ::

            woken = await task.memory.hydrate(task.message.text)
            await task.memory.record("decision", {"use": "postgres"}, event_id=f"{task.id}:db")
        """
        return self._owned.memory(self.agent, session_id=self.session_id)

    @overload
    async def ask(
        self,
        question: str | dict[str, Any] | ChatMessage | ContentBlock | Sequence[ContentBlock],
        *,
        name: str = "ask",
        auth: bool = False,
    ) -> ChatMessage: ...

    @overload
    async def ask(
        self,
        question: str | dict[str, Any] | ChatMessage | ContentBlock | Sequence[ContentBlock],
        *,
        options: Sequence[str],
        name: str = "ask",
        auth: bool = False,
    ) -> str: ...

    @overload
    async def ask(
        self,
        question: str | dict[str, Any] | ChatMessage | ContentBlock | Sequence[ContentBlock],
        *,
        schema: type[T],
        name: str = "ask",
        auth: bool = False,
    ) -> T: ...

    @overload
    async def ask(
        self,
        question: str | dict[str, Any] | ChatMessage | ContentBlock | Sequence[ContentBlock],
        *,
        schema: dict[str, Any],
        name: str = "ask",
        auth: bool = False,
    ) -> Any: ...

    async def ask(
        self,
        question: str | dict[str, Any] | ChatMessage | ContentBlock | Sequence[ContentBlock],
        *,
        options: Sequence[str] | None = None,
        schema: Any = None,
        name: str = "ask",
        auth: bool = False,
    ) -> Any:
        """Ask the client a question and return the answer.

        The call ends this run of the handler. The task becomes ``input-required``, or
        ``auth-required`` with ``auth=True``, for an answer that is a credential. No worker holds it
        while it waits. When the client has answered, a worker runs the handler again from the
        start, and this call returns the answer.

        With ``options`` an answer must be one of these texts; any other is refused, with an error
        that lists them, and the task waits on. The call then returns the option. With ``schema``, a
        type or a JSON Schema, the answer's data, or its text read as JSON, must fit it, and the
        call returns the value. The question's message has them in its metadata. ::

            scope = await task.ask("Which chapter matters?")
            await task.say(f"reading {scope.text}")
        """
        key = await self._next("ask", name, branches=False)
        if stored := self._journal.find(key):
            wanted = stored.result["message_id"]
            answer = next(one for one in self._record.messages if one.id == wanted)
            if schema is not None:
                return typed_answer(schema, stored.result, answer)
            return answer if options is None else answer.text.strip()
        to = TaskState.AUTH_REQUIRED if auth else TaskState.INPUT_REQUIRED
        message = to_message(question)
        if options is not None:
            message = replace(message, metadata={**message.metadata, "options": list(options)})
        wanted = None if schema is None else schema_of(schema)
        if wanted is not None:
            message = replace(message, metadata={**message.metadata, "schema": wanted})
        return await self._suspend(to, message=message, ask=key, options=options, schema=wanted)

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
        """Write a chunk of an artifact; without ``append`` it replaces the earlier chunks.

        Chunks written outside a step belong to this run: a later run starts the artifact again.
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
            blobs=self._owned.blobs,
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
            step=current_step.get(),
        )

    def reply(
        self, content: str | dict[str, Any] | ChatMessage | ContentBlock | Sequence[ContentBlock]
    ) -> Reply:
        """Answer with a message instead of a task; the handler must return the result of this call.

        A client that sends a message and waits gets a message, not a task. The ledger still stores
        the task as ``completed``, with the message. After ``step``, ``ask``, ``say``, ``sleep`` or
        ``artifact`` this raises ``ConfigError``, because the client may have seen the task by then.
        ::

            @app.handler
            async def chat(task: holdfast.TaskContext) -> holdfast.Reply | str:
                if task.message.text == "ping":
                    return task.reply("pong")
                return await task.step("answer", answer, task.message.text)
        """
        self.check_reply()
        return Reply(to_message(content))

    def check_reply(self, *, shown: bool = False) -> None:
        """Raise ``ConfigError`` if a task that replies has done anything else. The worker calls it.

        ``shown`` says that the task has artifacts. ::

            task.check_reply()
        """
        if shown or self._wrote or self._journal:
            raise ConfigError(
                "task.reply() is for a handler that has done nothing else: use it before any step, "
                "ask, say, sleep or artifact, or return the message without it"
            )

    async def sleep(self, seconds: float, *, name: str = "sleep") -> None:
        """Suspend the task for ``seconds``. No worker holds it meanwhile, and it survives restarts.

        ::

            await task.sleep(3600)
        """
        later = datetime.now(UTC) + timedelta(seconds=check_seconds("seconds", seconds))
        await self.sleep_until(later, name=name)

    async def sleep_until(self, when: datetime, *, name: str = "sleep") -> None:
        """Suspend the task until ``when``; later runs of the handler use the time of the first run.

        ::

            await task.sleep_until(datetime(2030, 1, 1, tzinfo=UTC))
        """
        key = await self._next("sleep", name, branches=False)
        check_time("when", when)
        stored = await self._keep(key, when.astimezone(UTC).isoformat())
        until = datetime.fromisoformat(stored.result)
        # The ledger's clock decided that the task is due. Allow our clock to be a second behind,
        # so that the task does not go back to sleep.
        if until > datetime.now(UTC) + timedelta(seconds=1 if stored.fence < self.fence else 0):
            await self._suspend(TaskState.SUBMITTED, run_after=until, progress=True)

    async def _keep_ids(self, contents: list[str], ids: list[str]) -> list[str]:
        """Return the ids under which the first run appended these contents. Works inside a step.

        The key is a digest of the contents, not a counter: if a later run skips an append because
        the transcript has it, the next append must not get its ids.
        """
        inside = current_step.get()
        name = content_digest([str(inside or ""), *contents])
        key = self._journal.next_key(HISTORY, name) if inside else await self._next(HISTORY, name)
        kept: list[str] = (await self._keep(key, ids)).result
        return kept
