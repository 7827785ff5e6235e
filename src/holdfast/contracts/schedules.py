"""Schedules: tasks at the ticks of a cron expression, as agents and workers use them."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime
from itertools import islice
from typing import Any, Protocol, TypeAlias, runtime_checkable

from holdfast.contracts.cron import Cron
from holdfast.contracts.front import Layered
from holdfast.contracts.schedule_runs import load_schedule, run_of
from holdfast.contracts.tasks.checks import check_owner
from holdfast.spi.schedules import ScheduleDraft, ScheduleKey, ScheduleStorage, no_schedule
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.checks import (
    check_absent_id,
    check_count,
    check_id,
    check_seconds,
    check_unreserved,
)
from holdfast.values.codec import decode_json
from holdfast.values.content import ChatMessage
from holdfast.values.deprecation import renamed
from holdfast.values.errors import EngineError, HoldfastError, InvalidInputError
from holdfast.values.identity import Agent, AgentId
from holdfast.values.ids import new_id
from holdfast.values.owners import Owner
from holdfast.values.schedules import (
    GRACE_SECONDS,
    MAX_MISSED_LIMIT,
    MISSED_LIMIT,
    Missed,
    ScheduleRecord,
)
from holdfast.values.tasks.records import MAX_ATTEMPTS, TaskRecord, content_digest
from holdfast.values.tasks.trace import encode_untraced

Ticks: TypeAlias = list[datetime]
Tasks: TypeAlias = list[TaskRecord]

MAX_NEXT_RUNS = 1000
MAX_SCHEDULES = 1000
"""How many schedules an owner may have, and one call returns or runs at most."""
FAILED_SECONDS = 60.0
"""After how many seconds a schedule that failed is run again."""


@runtime_checkable
class ScheduleStore(Protocol):
    """Schedules, which submit a task at each tick of a cron expression.

    Workers submit the tasks. However many workers run, each tick makes one task: the task is stored
    and the schedule advanced in one step. The engine's clock decides when it is time for a tick.
    Each task has ``schedule_id`` and ``scheduled_at`` (the tick, in UTC) in its metadata. Ids are
    separate per owner. The default of ``owner`` is that of the state; without one, schedules
    without an owner.

    Promises:

    - a schedule comes back as it was created
    - an unknown schedule is none
    - the same schedule created again is the one that is there
    - a schedule that is there with other content is refused
    - upsert replaces the content and keeps a pause
    - upsert of the same content changes nothing
    - 10 concurrent creates of one schedule make one
    - schedules are listed by owner and id
    - pages of schedules follow each other without a gap or a repeat
    - a limit of zero is an empty list of schedules
    - a new schedule has no ticks before it was created
    - a tick makes one task, with its message, agent, owner and time
    - a tick makes one task however many workers run it at once
    - each tick of many runs makes one task, and none is lost
    - a clock that is set back runs no tick twice
    - missed ticks are skipped on request, beyond the grace time
    - missed ticks make one task on request, for the last of them
    - missed ticks make a task each on request, up to the limit
    - a paused schedule makes no tasks
    - a resumed schedule makes no tasks for the time of its pause
    - a pause or resume that is repeated has no effect
    - a deleted schedule makes no tasks, and its tasks stay
    - a schedule that is created again after a delete makes tasks of its own
    - a change takes effect at ticks from then on
    - a tick that a client's clock change skips runs after the gap
    - a tick that a client's clock change repeats runs once
    - next_runs gives the ticks to come
    - a schedule with a session id makes all its tasks in that context
    - an expression, a time zone or a policy that is none is refused
    - another owner's schedule is not found on any path
    - the operator lists the schedules of all owners
    - one tenant never sees another's schedules
    - a client cannot submit a task under the key of a tick
    - an owner has at most 1000 schedules
    - a schedule that fails is tried again later and holds up no other
    - a schedule is still there after a reopen
    """

    @abstractmethod
    async def create(
        self,
        schedule_id: str,
        cron: str,
        *,
        agent: Agent,
        message: ChatMessage | str,
        timezone: str = "UTC",
        missed: Missed | str = Missed.ONCE,
        missed_limit: int = MISSED_LIMIT,
        grace_seconds: float = GRACE_SECONDS,
        owner: str | None = None,
        session_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> ScheduleRecord:
        """Create a schedule. It submits tasks for the ticks from now on.

        ``cron`` has five fields: minute, hour, day, month, day of the week. ``missed`` decides
        about ticks at which no worker ran: ``"skip"`` drops those that are more than
        ``grace_seconds`` late, ``"once"`` makes one task for the last of them, ``"all"`` a task for
        each of the last ``missed_limit``. Creating the same schedule again has no effect; with
        other content it raises ``ConflictError``.

        ::

            await state.schedules.create(
                "daily-report", "0 9 * * mon-fri", timezone="Europe/Paris",
                agent="reporter", message="Write the report of yesterday.",
            )
        """
        ...

    @abstractmethod
    async def upsert(
        self,
        schedule_id: str,
        cron: str,
        *,
        agent: Agent,
        message: ChatMessage | str,
        timezone: str = "UTC",
        missed: Missed | str = Missed.ONCE,
        missed_limit: int = MISSED_LIMIT,
        grace_seconds: float = GRACE_SECONDS,
        owner: str | None = None,
        session_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> ScheduleRecord:
        """Create a schedule, or replace its content. A paused one stays paused.

        If ``cron`` or ``timezone`` changes, only ticks from now on make tasks.

        ::

            await state.schedules.upsert("daily", "0 8 * * *", agent="reporter", message="Go")
        """
        ...

    @abstractmethod
    async def get(self, schedule_id: str, *, owner: str | None = None) -> ScheduleRecord | None:
        """Return a schedule, or ``None``.

        ::

            schedule = await state.schedules.get("daily-report")
        """
        ...

    @abstractmethod
    async def list(
        self, *, owner: Owner = None, limit: int = 100, after: ScheduleRecord | None = None
    ) -> list[ScheduleRecord]:
        """Return schedules, sorted by owner and id.

        ``after`` is the last schedule of the previous page. ``owner=None`` is the owner of the
        state; without one, every owner.

        ::

            for schedule in await state.schedules.list():
                print(schedule.id, schedule.next_run_at)
        """
        ...

    @abstractmethod
    async def next_runs(
        self, schedule_id: str, count: int = 5, *, owner: str | None = None
    ) -> Ticks:
        """Return the next ticks of a schedule, paused or not, in UTC.

        Raises ``NotFoundError`` if there is no such schedule.

        ::

            print(await state.schedules.next_runs("daily-report", 3))
        """
        ...

    @abstractmethod
    async def pause(self, schedule_id: str, *, owner: str | None = None) -> ScheduleRecord:
        """Pause a schedule: it makes no tasks until it is resumed.

        ::

            await state.schedules.pause("daily-report")
        """
        ...

    @abstractmethod
    async def resume(self, schedule_id: str, *, owner: str | None = None) -> ScheduleRecord:
        """Resume a paused schedule. Ticks during the pause make no tasks.

        ::

            await state.schedules.resume("daily-report")
        """
        ...

    @abstractmethod
    async def delete(self, schedule_id: str, *, owner: str | None = None) -> bool:
        """Delete a schedule. Returns whether there was one. Its tasks stay.

        ::

            await state.schedules.delete("daily-report")
        """
        ...

    @abstractmethod
    async def run_due(self, *, limit: int = 100) -> Tasks:
        """Submit the tasks of up to ``limit`` schedules that are due. Returns the new tasks.

        For workers, which call it for all owners of a tenant. ::

            for task in await state.schedules.run_due():
                print(task.id, task.metadata["scheduled_at"])
        """
        ...


class Schedules(Layered, ScheduleStore):
    """Implements ``ScheduleStore``: checks the arguments, then calls the engine's storage.

    ::

        schedules = Schedules(PostgresSchedules(engine, tenant="acme"))
    """

    def __init__(self, storage: ScheduleStorage) -> None:
        self._storage = storage

    @renamed(context_id="session_id")
    async def create(
        self, schedule_id: str, cron: str, *, owner: str | None = None, **content: Any
    ) -> ScheduleRecord:
        """Create a schedule. It submits tasks for the ticks from now on."""
        draft = _draft(schedule_id, cron, owner, **content)
        return load_schedule(await self._storage.put(draft, replace=False, most=MAX_SCHEDULES))

    async def upsert(
        self, schedule_id: str, cron: str, *, owner: str | None = None, **content: Any
    ) -> ScheduleRecord:
        """Create a schedule, or replace its content."""
        draft = _draft(schedule_id, cron, owner, **content)
        return load_schedule(await self._storage.put(draft, replace=True, most=MAX_SCHEDULES))

    async def get(self, schedule_id: str, *, owner: str | None = None) -> ScheduleRecord | None:
        """Return a schedule, or ``None``."""
        found = await self._storage.get(_key(schedule_id, owner))
        return None if found is None else load_schedule(found)

    async def list(
        self, *, owner: Owner = None, limit: int = 100, after: ScheduleRecord | None = None
    ) -> list[ScheduleRecord]:
        """Return schedules by owner and id."""
        whose = check_owner(owner)
        most = min(check_count("limit", limit), MAX_SCHEDULES)
        last = None if after is None else _after(after)
        found = await self._storage.list_schedules(whose, last, most)
        return [load_schedule(one) for one in found]

    async def next_runs(
        self, schedule_id: str, count: int = 5, *, owner: str | None = None
    ) -> Ticks:
        """Return the next ticks of a schedule, in UTC."""
        many = check_count("count", count)
        if many > MAX_NEXT_RUNS:
            raise InvalidInputError("count", f"must be at most {MAX_NEXT_RUNS}")
        found = await self._storage.get(_key(schedule_id, owner))
        if found is None:
            raise no_schedule(schedule_id)
        cron = Cron(found.draft.cron, found.draft.timezone)
        return list(islice(cron.ticks_after(found.after), many))

    async def pause(self, schedule_id: str, *, owner: str | None = None) -> ScheduleRecord:
        """Pause a schedule."""
        found = await self._storage.set_paused(_key(schedule_id, owner), paused=True)
        return load_schedule(found)

    async def resume(self, schedule_id: str, *, owner: str | None = None) -> ScheduleRecord:
        """Resume a paused schedule."""
        found = await self._storage.set_paused(_key(schedule_id, owner), paused=False)
        return load_schedule(found)

    async def delete(self, schedule_id: str, *, owner: str | None = None) -> bool:
        """Delete a schedule."""
        return await self._storage.delete(_key(schedule_id, owner))

    async def run_due(self, *, limit: int = 100) -> Tasks:
        """Submit the tasks of schedules that are due."""
        now, schedules = await self._storage.due(min(check_count("limit", limit), MAX_SCHEDULES))
        made: list[TaskRecord] = []
        wrong: HoldfastError | None = None
        for one in schedules:
            try:
                made += [task.load() for task in await self._storage.run(run_of(one, now))]
            except HoldfastError as error:
                # A time zone that is not known here: it must not hold up the other schedules.
                wrong = wrong or error
                if not isinstance(error, EngineError):
                    await self._storage.defer(one, FAILED_SECONDS)
        if wrong is not None:
            raise wrong
        return made


def _key(schedule_id: object, owner: object) -> ScheduleKey:
    return ScheduleKey(check_absent_id("owner", owner), check_id("schedule_id", schedule_id))


def _after(last: object) -> ScheduleKey:
    if not isinstance(last, ScheduleRecord):
        raise InvalidInputError("after", f"must be a ScheduleRecord, not {type(last).__name__}")
    return ScheduleKey(check_absent_id("after.owner", last.owner), check_id("after.id", last.id))


def _draft(
    schedule_id: object,
    expression: str,
    owner: object,
    *,
    agent: Agent,
    message: ChatMessage | str,
    timezone: str = "UTC",
    missed: Missed | str = Missed.ONCE,
    missed_limit: int = MISSED_LIMIT,
    grace_seconds: float = GRACE_SECONDS,
    session_id: str | None = None,
    metadata: dict[str, Any] | None = None,
    max_attempts: int = MAX_ATTEMPTS,
) -> ScheduleDraft:
    key = _key(check_unreserved("schedule_id", check_id("schedule_id", schedule_id)), owner)
    check_unreserved("owner", key.owner)
    cron = Cron(expression, timezone)
    attempts, many = (
        check_count("max_attempts", max_attempts),
        check_count("missed_limit", missed_limit),
    )
    if attempts == 0:
        raise InvalidInputError("max_attempts", "must be 1 or more")
    if not 1 <= many <= MAX_MISSED_LIMIT:
        raise InvalidInputError("missed_limit", f"must be from 1 to {MAX_MISSED_LIMIT}")
    content = {
        "cron": cron.expression,
        "timezone": cron.timezone,
        "agent": AgentId.parse(agent),
        "message": StoredMessage.of(
            ChatMessage.user(message) if isinstance(message, str) else message
        ).payload,
        "session_id": check_unreserved("session_id", check_absent_id("session_id", session_id)),
        "metadata": encode_untraced(metadata),
        "missed": _check_missed(missed),
        "missed_limit": many,
        "grace_seconds": float(check_seconds("grace_seconds", grace_seconds)),
        "max_attempts": attempts,
    }
    plain = {
        **content,
        "agent": str(content["agent"]),
        "message": decode_json(str(content["message"])),
        "metadata": decode_json(str(content["metadata"])),
    }
    made: Any = content
    return ScheduleDraft(
        key.schedule_id, key.owner, **made, digest=content_digest(plain), uid=new_id()
    )


def _check_missed(value: object) -> Missed:
    try:
        return Missed(str(value))
    except ValueError:
        names = ", ".join(Missed)
        raise InvalidInputError("missed", f"must be one of {names}, not {value!r}") from None
