"""An app: agents by name, and the handlers that run their tasks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime, timedelta
from typing import Any, TypeAlias, TypedDict, TypeVar, overload

from holdfast.contracts.history import HistoryRetention
from holdfast.runtime.app_limits import limits_of
from holdfast.runtime.handlers import Handler, HandlerFunction, Handlers
from holdfast.runtime.schedules import ScheduledApp
from holdfast.runtime.skills import MODES, Provider, Skill, check_modes
from holdfast.runtime.stores import TaskStores, check_state
from holdfast.values.checks import (
    check_absent_id,
    check_optional_count,
    check_optional_id,
    check_seconds,
    check_text,
)
from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import renamed
from holdfast.values.errors import ConfigError, InvalidInputError
from holdfast.values.identity import Agent, AgentId
from holdfast.values.owners import MemoryScope
from holdfast.values.tasks.limits import Limit
from holdfast.values.tasks.records import TaskRecord

Lifespan: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]
F = TypeVar("F", bound=HandlerFunction)


class ClaimOptions(TypedDict):
    """The keyword arguments of ``tasks.claim`` that the workers of an app pass."""

    agents: Sequence[Agent]
    serial_contexts: bool
    limits: Sequence[Limit]
    versions: Mapping[AgentId, Sequence[str]]
    app_version: str


class App(ScheduledApp):
    """The agents of a program; ``holdfast worker module:app`` runs their handlers.

    A task sees the transcripts, states, facts and memories of its own owner. With
    ``memory="shared"`` all owners of the tenant share facts and recall; transcripts and states stay
    separate for each owner. The worker copies the messages of a task to the transcript and the
    memory of its context, unless ``remember`` is false. ``provider``, ``input_modes``,
    ``output_modes`` and ``documentation_url`` are for the agent card.

    ``lifespan`` creates resources that handlers share and that are not stored, such as an HTTP
    client. It is a function that returns an async context manager. A worker enters it before its
    first task and exits it after its last one; the value it yields is ``task.resources``.

    ``tenant_concurrency`` and ``tenant_rate`` (such as ``"10/min"``) limit the tasks of each
    tenant, of all agents together and across all workers. ::

        app = holdfast.App("researcher")

        @app.handler
        async def research(task: holdfast.TaskContext) -> str:
            return await task.step("answer", answer, task.message.text)
    """

    def __init__(
        self,
        name: str,
        *,
        description: str = "",
        version: str = "0.1.0",
        serial_contexts: bool = True,
        retention: HistoryRetention = HistoryRetention.PERMANENT,
        memory: MemoryScope = "owner",
        remember: bool = True,
        provider: Provider | None = None,
        input_modes: Sequence[str] = MODES,
        output_modes: Sequence[str] = MODES,
        documentation_url: str = "",
        lifespan: Lifespan | None = None,
        tenant_concurrency: int | None = None,
        tenant_rate: str | None = None,
    ) -> None:
        try:
            self.agent = AgentId.parse(name)
        except InvalidInputError as error:
            raise InvalidInputError("name", str(error).removeprefix("agent_id: ")) from None
        self.description = check_text("description", description)
        self.version = check_optional_id("version", version)
        self.serial_contexts = serial_contexts
        self.retention = HistoryRetention(retention)
        if memory not in ("owner", "shared"):
            raise InvalidInputError("memory", f"must be 'owner' or 'shared', not {memory!r}")
        self.memory: MemoryScope = memory
        self.remember = remember
        self.provider = provider
        self.input_modes = check_modes("input_modes", input_modes)
        self.output_modes = check_modes("output_modes", output_modes)
        self.documentation_url = check_text("documentation_url", documentation_url)
        if lifespan is not None and not callable(lifespan):
            raise InvalidInputError(
                "lifespan", "must be a function that returns an async context manager"
            )
        self._lifespan = lifespan
        self._tenant_limits = limits_of(None, concurrency=tenant_concurrency, rate=tenant_rate)
        self._handlers = Handlers()
        super().__init__()

    def __repr__(self) -> str:
        return f"<App {str(self.agent)!r} with {len(self.handlers)} handlers>"

    @property
    def name(self) -> str:
        """The app's default agent: a task is for it unless it names another agent."""
        return str(self.agent)

    @property
    def handlers(self) -> list[Handler]:
        """The handlers that take new tasks, in the order they were added."""
        return list(self._handlers.current.values())

    @property
    def agents(self) -> list[AgentId]:
        """The agents that have a handler."""
        return list(self._handlers.current)

    @property
    def limits(self) -> list[Limit]:
        """The limits of all handlers and of each tenant, for the claims of workers."""
        own = (limit for handler in self.handlers for limit in handler.limits)
        return [*self._tenant_limits, *own]

    @property
    def claims(self) -> ClaimOptions:
        """Which tasks the workers of the app claim: keyword arguments of ``tasks.claim``."""
        return {
            "agents": self.agents,
            "serial_contexts": self.serial_contexts,
            "limits": self.limits,
            "versions": self._handlers.versions,
            "app_version": self.version,
        }

    @overload
    def handler(self, function: F, /) -> F: ...

    @overload
    def handler(
        self,
        function: None = None,
        /,
        *,
        agent: str | None = None,
        timeout_seconds: float | None = None,
        max_attempts: int | None = None,
        backoff_seconds: float = 1.0,
        max_backoff_seconds: float = 60.0,
        retention: HistoryRetention | None = None,
        tags: Sequence[str] = ("durable",),
        examples: Sequence[str] = (),
        input_modes: Sequence[str] = (),
        output_modes: Sequence[str] = (),
        public: bool = True,
        concurrency: int | None = None,
        rate: str | None = None,
        key_concurrency: int | None = None,
        key_rate: str | None = None,
        version: str | None = None,
    ) -> Callable[[F], F]: ...

    def handler(
        self,
        function: F | None = None,
        /,
        *,
        agent: str | None = None,
        timeout_seconds: float | None = None,
        max_attempts: int | None = None,
        backoff_seconds: float = 1.0,
        max_backoff_seconds: float = 60.0,
        retention: HistoryRetention | None = None,
        tags: Sequence[str] = ("durable",),
        examples: Sequence[str] = (),
        input_modes: Sequence[str] = (),
        output_modes: Sequence[str] = (),
        public: bool = True,
        concurrency: int | None = None,
        rate: str | None = None,
        key_concurrency: int | None = None,
        key_rate: str | None = None,
        version: str | None = None,
    ) -> F | Callable[[F], F]:
        """Register a coroutine function as the handler of the app's agent, or of ``agent``.

        An exception is a failed attempt. The worker retries it after ``backoff_seconds``, doubled
        each time; after ``max_attempts`` without progress the task fails. If the task was submitted
        with a smaller ``max_attempts``, that limit applies; without ``max_attempts`` here, the
        task's own limit applies. ``timeout_seconds`` limits one run of the handler; ``None`` means
        no limit.

        ``tags``, ``examples``, ``input_modes`` and ``output_modes`` describe the skill on the agent
        card; the modes default to the app's. With ``public=False`` the skill is only on the
        extended card, which needs an API key; any client can still send tasks to the agent.

        All workers of a tenant together run at most ``concurrency`` of the agent's tasks at once
        and begin at most ``rate`` of them, such as ``"10/min"``. ``key_concurrency`` and
        ``key_rate`` do the same for the tasks that were submitted with one ``key``.

        A task that began with a ``version`` of its handler is only run by that version, on a worker
        that has it. An agent may have several versions; the last one takes new tasks. ::

            @app.handler(agent="writer", timeout_seconds=600)
            async def write(task: holdfast.TaskContext) -> None: ...
        """
        if timeout_seconds is not None:
            check_seconds("timeout_seconds", timeout_seconds)
        if check_optional_count("max_attempts", max_attempts) == 0:
            raise InvalidInputError("max_attempts", "must be 1 or more")
        check_seconds("backoff_seconds", backoff_seconds)
        check_seconds("max_backoff_seconds", max_backoff_seconds)
        skill = Skill(tags, examples, input_modes, output_modes, public)
        who = self.agent if agent is None else AgentId.parse(agent)
        limits = limits_of(
            who,
            concurrency=concurrency,
            rate=rate,
            key_concurrency=key_concurrency,
            key_rate=key_rate,
        )

        def add(given: F) -> F:
            self._handlers.add(
                Handler(
                    who,
                    given,
                    description=inspect.getdoc(given) or "",
                    timeout_seconds=timeout_seconds,
                    max_attempts=max_attempts,
                    backoff_seconds=backoff_seconds,
                    max_backoff_seconds=max_backoff_seconds,
                    retention=self.retention if retention is None else HistoryRetention(retention),
                    memory=self.memory,
                    skill=skill,
                    limits=limits,
                    version=check_absent_id("version", version),
                )
            )
            return given

        return add if function is None else add(function)

    def resources(self) -> AbstractAsyncContextManager[Any]:
        """Return the context manager that ``lifespan`` creates; a worker enters it.

        ::

            async with app.resources() as shared: ...
        """
        if self._lifespan is None:
            return nullcontext()
        found: object = self._lifespan()
        if not isinstance(found, AbstractAsyncContextManager):
            raise ConfigError(
                f"the lifespan of the app {self.name} must return an async context manager, "
                f"not {type(found).__name__}: put @contextlib.asynccontextmanager before it"
            )
        return found

    def handler_of(self, agent: Agent) -> Handler:
        """Return the handler of an agent that takes new tasks.

        Raises ``NotFoundError`` if it has none. ::

            app.handler_of("researcher").timeout_seconds
        """
        return self._handlers.get(agent)

    def handler_for(self, task: TaskRecord) -> Handler:
        """Return the handler that runs the task, in the version that the task began with.

        Raises ``NotFoundError`` if the app has none. ::

            app.handler_for(task).timeout_seconds
        """
        return self._handlers.get(task.agent, task.handler_version)

    @renamed(context_id="session_id")
    async def submit(
        self,
        state: TaskStores,
        message: str | ChatMessage,
        *,
        agent: Agent | None = None,
        session_id: str | None = None,
        owner: str | None = None,
        metadata: dict[str, Any] | None = None,
        submit_key: str | None = None,
        run_after: datetime | timedelta | None = None,
        priority: int = 0,
        key: str | None = None,
    ) -> TaskRecord:
        """Queue a task with its handler's ``max_attempts``, and return its record with its id.

        ::

            task = await app.submit(state, "Tides of Brest?", submit_key="order-7")
        """
        if isinstance(state, (str, ChatMessage)):
            raise InvalidInputError(
                "state",
                f"must be an open State, not {type(state).__name__}: the state comes "
                "first, as in app.submit(state, message)",
            )
        handler = self.handler_of(self.agent if agent is None else agent)
        return await state.tasks.submit(
            handler.agent,
            message if isinstance(message, ChatMessage) else ChatMessage.user(message),
            session_id=session_id,
            owner=owner,
            metadata=metadata,
            submit_key=submit_key,
            max_attempts=handler.submit_attempts,
            run_after=run_after,
            priority=priority,
            key=key,
        )

    async def run_until_idle(self, state: TaskStores, *, concurrency: int = 10) -> int:
        """Run all due tasks of the state's tenant in this process. Returns how many runs it took.

        For tests and notebooks. Tasks that wait for an answer or for a later time are skipped. ::

            await app.run_until_idle(state)
        """
        # Imported here: the worker module imports this one.
        from holdfast.runtime.worker import Worker  # noqa: PLC0415

        check_state(state)
        worker = Worker(self, state, tenants=[state.tenant], concurrency=concurrency)
        return await worker.run_until_idle()
