"""The schedules that an app declares with its handlers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from holdfast.contracts.cron import Cron
from holdfast.values.checks import check_id
from holdfast.values.content import ChatMessage
from holdfast.values.errors import AlreadyExistsError, ConfigError
from holdfast.values.identity import AgentId
from holdfast.values.schedules import GRACE_SECONDS, MISSED_LIMIT, Missed

F = TypeVar("F", bound=Callable[..., Any])


class _Handler(Protocol):
    @property
    def agent(self) -> AgentId: ...

    @property
    def function(self) -> Any: ...

    @property
    def submit_attempts(self) -> int: ...


@dataclass(frozen=True, slots=True)
class AppSchedule:
    """A schedule that an app declares: its id, its expression, and the options of ``upsert``."""

    id: str
    cron: str
    options: dict[str, Any]


class ScheduledApp(ABC):
    """The part of an ``App`` that declares schedules."""

    def __init__(self) -> None:
        self._scheduled: dict[str, tuple[Callable[..., Any], str, dict[str, Any]]] = {}

    @property
    @abstractmethod
    def handlers(self) -> Sequence[_Handler]:
        """All handlers."""

    def schedule(
        self,
        cron: str,
        *,
        timezone: str = "UTC",
        id: str | None = None,
        message: ChatMessage | str | None = None,
        missed: Missed | str = Missed.ONCE,
        missed_limit: int = MISSED_LIMIT,
        grace_seconds: float = GRACE_SECONDS,
        metadata: dict[str, Any] | None = None,
    ) -> Callable[[F], F]:
        """Run a handler at the times of a cron expression; see ``state.schedules.create``.

        A worker stores the schedule when it starts, in each tenant that it was given, or else in
        the tenant of its state. The default of ``id`` is the function's name. A schedule
        that is no longer declared stays until it is deleted. ::

            @app.schedule("0 9 * * mon-fri", timezone="Europe/Paris")
            @app.handler
            async def report(task: holdfast.TaskContext) -> str:
                return f"the report of {task.metadata['scheduled_at']}"
        """
        expression = Cron(cron, timezone).expression

        def add(function: F) -> F:
            name = check_id("id", id or getattr(function, "__name__", ""))
            if name in self._scheduled:
                raise AlreadyExistsError(
                    "schedule",
                    name,
                    f"the app has a schedule {name!r} already: name this one, "
                    'as in @app.schedule("...", id="...")',
                )
            options = {
                "timezone": timezone,
                "message": f"Run the schedule {name}." if message is None else message,
                "missed": missed,
                "missed_limit": missed_limit,
                "grace_seconds": grace_seconds,
                "metadata": metadata,
            }
            self._scheduled[name] = (function, expression, options)
            return function

        return add

    @property
    def schedules(self) -> list[AppSchedule]:
        """The schedules, each with the agent whose handler it runs.

        ::

            for schedule in app.schedules:
                print(schedule.id, schedule.cron)
        """
        found = []
        for name, (function, cron, options) in self._scheduled.items():
            handler = next((one for one in self.handlers if one.function is function), None)
            if handler is None:
                raise ConfigError(
                    f"the function of the schedule {name!r} is not a handler: "
                    "put @app.handler on it as well"
                )
            whose = {"agent": handler.agent, "max_attempts": handler.submit_attempts}
            found.append(AppSchedule(name, cron, options | whose))
        return found
