"""A large database: sessions and tasks that the API wrote once, copied by SQL to many tenants.

The rows of a session of 100 events, indexed, with its state, and those of a completed and of a
waiting task are written through the API for the tenant ``template``. The copies have tenants,
agents, ids and keys of their own, and are otherwise these rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import holdfast
from holdfast import ChatMessage, Settings
from holdfast.spi import StepKey

EVENTS = 100
"""Events of each session."""

_BATCH = 2_000
_KEYS = 1_000
"""Keys of copies begin here: those below are of the template."""

_HEAD = "lpad(to_hex($2::bigint + n), 8, '0') || substr({}, 9)"
"""An id of a copy: the number takes the place of its time, so that ids ascend as they are made."""

_SESSIONS = {
    "sessions": {"id": "'s' || n", "key": "{keys} + n"},
    "events": {"id": _HEAD.format("x.id"), "session_key": "{keys} + n"},
    "states": {"session_id": "'s' || n"},
    "event_agents": {"key": "{keys} + n"},
    "event_numbers": {"agent_key": "{keys} + n", "session_key": "{keys} + n"},
    "event_blocks": {"agent_key": "{keys} + n"},
}
_TASKS = {
    "task_contexts": {"id": _HEAD.format("x.id"), "key": "{keys} + n"},
    "tasks": {
        "id": _HEAD.format("x.id"),
        "context_id": _HEAD.format("x.context_id"),
        "context_key": "{keys} + n",
        "copied": "x.state = 'completed'",
    },
    "task_events": {
        "task_id": _HEAD.format("x.task_id"),
        "message_id": _HEAD.format("x.message_id"),
        "context_key": "CASE WHEN x.context_key IS NOT NULL THEN {keys} + n END",
        "step_key": "CASE WHEN x.kind = 'step' THEN holdfast.task_step_key("
        + _HEAD.format("x.task_id")
        + ", x.step_kind, x.step_name, x.step_occurrence) END",
    },
}
_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
ORDER BY attnum
"""


@dataclass(frozen=True, slots=True)
class Size:
    """How much a database has: sessions and tasks are spread evenly over its tenants."""

    tenants: int
    sessions: int
    tasks: int
    waiting: int
    """How many of the tasks wait for a worker; the others are completed."""

    def to_json(self) -> dict[str, int]:
        """For programs."""
        return {
            "tenants": self.tenants,
            "sessions": self.sessions,
            "events": self.sessions * EVENTS,
            "tasks": self.tasks,
            "tasks_waiting": self.waiting,
        }


async def fill(url: str, connection: Any, size: Size, progress: Callable[[str], None]) -> None:
    """Write the template through the API and copy it; ``connection`` is a superuser's.

    ::

        await fill(url, connection, Size(10, 100, 1_000, 500), print)
    """
    completed, waiting = await _template(url)
    await connection.execute("SET synchronous_commit = off; SET session_replication_role = replica")
    agent = {"agent": "'writer/a' || n / $1::bigint"}
    every = {"tenant": "'t' || n % $1::bigint"}
    for table, own in _SESSIONS.items():
        progress(f"{size.sessions:,} sessions: {table}")
        keyed = "agent_key" in own
        condition = "x.agent_key = 1" if keyed else "x.tenant = 'template'"
        changed = own | ({} if keyed else every)
        if table in ("sessions", "events", "event_agents"):
            changed |= agent
        await _copied(connection, table, changed, condition, (size.tenants, 0, size.sessions))
    done = size.tasks - size.waiting
    for task, context, first, count in ((*completed, 0, done), (*waiting, done, size.waiting)):
        for table, own in _TASKS.items():
            progress(f"{count:,} tasks: {table}")
            column = "task_id" if table == "task_events" else "id"
            which = context if table == "task_contexts" else task
            condition = f"x.tenant = 'template' AND x.{column} = '{which}'"
            await _copied(connection, table, own | every, condition, (size.tenants, first, count))
    for table, last in (
        ("sessions", size.sessions),
        ("event_agents", size.sessions),
        ("task_contexts", size.tasks),
    ):
        await connection.execute(
            f"SELECT setval(pg_get_serial_sequence('holdfast.{table}', 'key'), $1)",
            _KEYS + last,
        )
    progress("vacuum and checkpoint")
    await connection.execute("VACUUM (ANALYZE)")
    await connection.execute("CHECKPOINT")


async def _copied(
    connection: Any, table: str, changed: dict[str, str], condition: str, to: tuple[int, int, int]
) -> None:
    columns = [row[0] for row in await connection.fetch(_COLUMNS, f"holdfast.{table}")]
    values = [changed.get(one, f'x."{one}"').format(keys=_KEYS) for one in columns]
    tenants, first, count = to
    sql = (
        f"INSERT INTO holdfast.{table} ({', '.join(map(_quoted, columns))}) "  # noqa: S608 - ours
        f"OVERRIDING SYSTEM VALUE SELECT {', '.join(values)} "
        f"FROM generate_series($3::bigint, $4::bigint) AS n, holdfast.{table} x "
        f"WHERE {condition} AND $1::bigint > 0 AND $2::bigint = 0"
    )
    for start in range(first, first + count, _BATCH):
        last = min(start + _BATCH, first + count) - 1
        await connection.execute(sql, tenants, 0, start, last)


def _quoted(name: str) -> str:
    return f'"{name}"'


async def _template(url: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Write what is copied; returns the ids of the completed and of the waiting task."""
    settings = Settings(auto_migrate=True, max_connections=2)
    async with holdfast.open(url, tenant="template", settings=settings) as state:
        memory = state.memory("writer/a0", session_id="s0")
        await memory.record_many([("note", {"text": note(at)}) for at in range(EVENTS)])
        await memory.state.set({"current_task": "unload", "step": 3})
        await memory.recall("harbour", 1)
        done = await state.tasks.submit("worker", ChatMessage.user("unload the ship"))
        [claimed] = await state.tasks.claim("w1", agents=["worker"])
        await state.tasks.record_step(claimed.lease, StepKey("fetch"), {"pages": 3})
        await state.tasks.transition(
            claimed.lease, "completed", message=ChatMessage.assistant("unloaded")
        )
        waiting = await state.tasks.submit("worker", ChatMessage.user("load the ship"))
    return (done.id, done.context_id), (waiting.id, waiting.context_id)


def note(at: int) -> str:
    """Return what event ``at`` of a session says.

    >>> note(3)
    'ship 3 came to pier 3 of harbour 3'
    """
    return f"ship {at % 31} came to pier {at % 7} of harbour {at % 97}"
