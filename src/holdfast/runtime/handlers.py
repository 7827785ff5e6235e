"""Handlers of an app, by agent and version."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

from holdfast.contracts.history import HistoryRetention
from holdfast.runtime.context import TaskContext
from holdfast.runtime.skills import Skill
from holdfast.values.errors import AlreadyExistsError, ConfigError, NotFoundError
from holdfast.values.identity import Agent, AgentId
from holdfast.values.owners import MemoryScope
from holdfast.values.tasks.limits import Limit
from holdfast.values.tasks.records import MAX_ATTEMPTS, TaskRecord

HandlerFunction: TypeAlias = Callable[[TaskContext], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Handler:
    """The coroutine function that runs an agent's tasks, with its timeout and retry settings.

    >>> async def nothing(task): ...
    >>> Handler(AgentId.parse("idle"), nothing).backoff_after(3).total_seconds()
    4.0
    """

    agent: AgentId
    function: HandlerFunction
    description: str = ""
    timeout_seconds: float | None = None
    max_attempts: int | None = None
    """Maximum attempts without progress; ``None`` uses the task's own limit."""

    backoff_seconds: float = 1.0
    max_backoff_seconds: float = 60.0
    retention: HistoryRetention = HistoryRetention.PERMANENT
    memory: MemoryScope = "owner"
    """``"owner"``: each owner has a separate memory; ``"shared"``: all owners share one."""

    skill: Skill = field(default_factory=Skill)
    limits: tuple[Limit, ...] = ()
    """Limits on how many of its tasks run at once and start per time, over a tenant's workers."""

    version: str = ""
    """A task that began with a version is only run by that version; empty: no versions."""

    @property
    def submit_attempts(self) -> int:
        """The ``max_attempts`` that a task for this handler is submitted with.

        >>> async def nothing(task): ...
        >>> Handler(AgentId.parse("idle"), nothing).submit_attempts
        5
        """
        return MAX_ATTEMPTS if self.max_attempts is None else self.max_attempts

    def attempts_of(self, task: TaskRecord) -> int:
        """Return the smaller of the task's and the handler's maximum of attempts without progress.

        A client that submits a task may not know the handler's limit. ::

            handler.attempts_of(task)
        """
        own = task.max_attempts
        return own if self.max_attempts is None else min(own, self.max_attempts)

    def backoff_after(self, attempts: int) -> timedelta:
        """Return the delay before the next attempt.

        It doubles with each failed attempt, up to ``max_backoff_seconds``.
        """
        doubled = self.backoff_seconds * 2.0 ** min(max(attempts, 1) - 1, 30)
        return timedelta(seconds=min(doubled, self.max_backoff_seconds))


class Handlers:
    """The handlers of an app. Of several versions, the one that was added last takes new tasks.

    ::

        handlers.add(Handler(agent, function, version="2"))
    """

    def __init__(self) -> None:
        self._by_agent: dict[AgentId, dict[str, Handler]] = {}

    @property
    def current(self) -> dict[AgentId, Handler]:
        """The handler of each agent that takes new tasks, in the order the agents were added."""
        return {agent: list(known.values())[-1] for agent, known in self._by_agent.items()}

    @property
    def versions(self) -> dict[AgentId, list[str]]:
        """The versions of each agent that has any, the one for new tasks first."""
        return {
            agent: list(reversed(known))
            for agent, known in self._by_agent.items()
            if "" not in known
        }

    def add(self, handler: Handler) -> None:
        """Add a handler. Raises ``AlreadyExistsError`` if its agent has one of this version."""
        check_function(handler.agent, handler.function)
        known = self._by_agent.setdefault(handler.agent, {})
        if handler.version in known or (known and "" in (handler.version, *known)):
            raise AlreadyExistsError(
                "handler",
                str(handler.agent),
                f"the agent {handler.agent} has a handler already: name another agent for this "
                'one, as in @app.handler(agent="..."), or give each of them another version, as in '
                '@app.handler(version="2")',
            )
        known[handler.version] = handler

    def get(self, agent: Agent, version: str = "") -> Handler:
        """Return the agent's handler of this version; without a version, the one for new tasks.

        Raises ``NotFoundError`` if there is none.
        """
        who = AgentId.parse(agent)
        known = self._by_agent.get(who)
        if not known:
            others = ", ".join(map(str, self._by_agent))
            hint = f"the app has handlers for {others}" if others else "add one with @app.handler"
            raise NotFoundError("handler", str(who), f"no handler for the agent {who}: {hint}")
        if version and version not in known:
            raise NotFoundError(
                "handler", str(who), f"no handler of version {version!r} for the agent {who}"
            )
        return known[version] if version else list(known.values())[-1]


def check_function(agent: AgentId, function: HandlerFunction) -> None:
    """Raise ``ConfigError`` unless a handler is an async function of one argument, the task.

    The error comes at registration, not at the first task. ::

        check_function(agent, function)
    """
    coroutine: object = function
    if isinstance(coroutine, str):
        raise ConfigError(
            f"@app.handler takes the agent by its name: @app.handler(agent={coroutine!r})"
        )
    if not inspect.iscoroutinefunction(coroutine):
        raise ConfigError(
            f"the handler of {agent} must be an async function: define it with async def"
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise ConfigError(
            f"the handler of {agent} must take one argument, the task ({error}): "
            f"async def {getattr(function, '__name__', 'handler')}(task)"
        ) from None
