"""The calls of clients on Postgres: submit, read, answer, cancel and pause tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.engines.postgres.queries import load
from holdfast.engines.postgres.tasks.rows import to_message, to_stored, to_task
from holdfast.engines.postgres.tasks.view import (
    LedgerView,
    filter_columns,
    message_columns,
    moment,
)
from holdfast.engines.postgres.tasks.work import Doorbell
from holdfast.spi.tasks.clients import (
    ClientStorage,
    FirstMessage,
    Request,
    TaskListing,
    TaskQuery,
)
from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.records import Extent, StoredTask, TaskKey, TaskSnapshot
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.codec import encode_json

_SUBMIT, _SQL = load("ledger_submit"), load("ledger_client")
_REQUESTS = {"cancel": _SQL["cancel"], "pause": _SQL["pause"], "resume": _SQL["resume"]}
_MOST = (1 << 63) - 1


class PostgresClients(LedgerView, ClientStorage):
    """The calls of clients: submit, read, answer, cancel and pause tasks."""

    @property
    def _one_statement(self) -> bool:
        """Whether a plain task is stored by one statement without a function; not with Citus."""
        return not self._engine.capabilities.distributed

    async def submit(self, draft: Draft) -> TaskSnapshot:
        """Store a task as submitted. If one with the same key exists, return that one."""
        if self._one_statement and _is_plain(draft):
            made = await self._engine.fetchval(
                _SUBMIT["submit_new"],
                *(self._tenant, draft.id, draft.owner, *_plain_columns(draft)),
                safe=True,
            )
            if made is not None:
                self._engine.singleton(Doorbell).ring()
                return _submitted(draft, made)
        row = await self._engine.fetchrow(
            _SUBMIT["submit"],
            *(self._tenant, draft.id, draft.owner, draft.session_id, draft.new_session_id),
            *(str(draft.agent), draft.metadata, draft.max_attempts),
            *(draft.submit_key, draft.digest(), draft.retry_of),
            *moment(draft.run_after),
            *message_columns(draft.message),
            [config.id for config in draft.push],
            [encode_json(config.url) for config in draft.push],
            [encode_json(config.token) for config in draft.push],
            [config.authentication for config in draft.push],
            *(draft.priority, draft.key, draft.by),
            safe=True,
        )
        return self._queued(row)

    async def submit_many(self, drafts: Sequence[Draft]) -> list[TaskSnapshot]:
        """Store tasks as submitted, all or none."""
        if self._one_statement and all(map(_is_plain, drafts)):
            plain = zip(*((draft.id, *_plain_columns(draft)) for draft in drafts), strict=True)
            made = await self._engine.fetchval(
                *(_SUBMIT["submit_many_new"], self._tenant, drafts[0].owner),
                *map(list, plain),
                safe=True,
            )
            if made is not None:
                self._engine.singleton(Doorbell).ring()
                return [_submitted(draft, made) for draft in drafts]
        columns = zip(*(_columns(draft) for draft in drafts), strict=True)
        ids, owner = [one.id for one in drafts], drafts[0].owner
        rows = await self._engine.fetch(
            _SUBMIT["submit_many"], self._tenant, owner, ids, *map(list, columns), safe=True
        )
        self._engine.singleton(Doorbell).ring()
        return [to_task(row) for row in rows]

    async def first_message(self, key: TaskKey) -> FirstMessage | None:
        """Return a task with its first message, or ``None``."""
        row = await self._engine.fetchrow(_SUBMIT["first"], self._tenant, *key, safe=True)
        if row is None:
            return None
        message = None if row["message_id"] is None else to_message(row)
        return FirstMessage(to_stored(row), message, row["now"])

    async def get(self, key: TaskKey, extent: Extent) -> TaskSnapshot | None:
        """Return a task with the parts that ``extent`` selects, or ``None``."""
        length, artifacts, most = extent
        within = () if most is None else (most,)
        row = await self._engine.fetchrow(
            _SQL["get_within"] if within else _SQL["get"],
            *(self._tenant, *key, length, artifacts, *within),
            safe=True,
        )
        return None if row is None else to_task(row)

    async def message_bytes(self, key: TaskKey) -> int:
        """Return how many bytes the messages of a task take."""
        found: int = await self._engine.fetchval(
            _SQL["message_bytes"], self._tenant, *key, safe=True
        )
        return found

    async def list_tasks(self, query: TaskQuery) -> TaskListing:
        """Return a page of tasks, ordered by their last change of state, the latest first."""
        wanted, after, limit, (length, artifacts, most), counted, *_ = query
        within = () if most is None and not query.oldest_first else (most,)
        bounded = _SQL["list_oldest"] if query.oldest_first else _SQL["list_within"]
        rows = await self._engine.fetch(
            bounded if within else _SQL["list"],
            *(self._tenant, *filter_columns(wanted)),
            *(after or (None, "")),
            # One more than the limit shows whether there is a next page.
            min(limit + 1, _MOST) if limit else 0,
            *(length, artifacts, counted, query.first_messages, wanted.children, *within),
            safe=True,
        )
        return TaskListing(
            [to_task(row) for row in rows[:limit] if row["id"] is not None],
            more=rows[0]["more"] if within else len(rows) > limit > 0,
            total=rows[0]["total"],
        )

    async def respond(
        self,
        key: TaskKey,
        answer: StoredMessage,
        result: str,
        form: str | None,
        by: str = "",
    ) -> TaskSnapshot | str:
        """Store the answer to a waiting task and queue the task.

        If the answer was checked against another form, return the form of the question.
        """
        row = await self._engine.fetchrow(
            _SQL["respond"],
            *(self._tenant, *key, *message_columns(answer), result, form, by),
            safe=True,
        )
        if row is not None:
            return self._queued(row)
        found = await self._engine.fetchval(_SQL["form"], self._tenant, *key, safe=True)
        # Empty if the question was answered meanwhile: the next call then finds that.
        return str(found or "")

    async def request(self, key: TaskKey, what: Request, note: str, by: str = "") -> TaskSnapshot:
        """Apply a request at once, or leave it to the task's worker."""
        # A second cancel changes nothing; a retried pause might undo a resume in between.
        row = await self._engine.fetchrow(
            _REQUESTS[what], self._tenant, *key, encode_json(note), by, safe=what == "cancel"
        )
        return self._requested(row)


def _is_plain(draft: Draft) -> bool:
    """Return whether a task can run at once and its insert needs no lookup of other rows."""
    looked_up = draft.session_id or draft.submit_key or draft.retry_of
    return not (looked_up or draft.push or draft.by) and draft.run_after is None


def _plain_columns(draft: Draft) -> tuple[Any, ...]:
    """Return the parameters of ``submit_new`` for a plain draft, without its id and owner."""
    return (
        *(draft.new_session_id, str(draft.agent), draft.metadata, draft.max_attempts),
        *(draft.priority, draft.key, *message_columns(draft.message)),
    )


def _submitted(draft: Draft, at: datetime) -> TaskSnapshot:
    """Return a plain task as it was stored at the time ``at``."""
    return TaskSnapshot(
        StoredTask(
            *(draft.id, draft.new_session_id, draft.owner, draft.agent, draft.metadata),
            *(draft.max_attempts, "", "", at, at),
            version=2,
            priority=draft.priority,
            key=draft.key,
        )
    )


def _columns(draft: Draft) -> tuple[Any, ...]:
    """Return the parameters of ``queue_tasks`` for a draft, without its id and owner."""
    return (
        *(draft.session_id, draft.new_session_id, str(draft.agent), draft.metadata),
        *(draft.max_attempts, draft.submit_key, draft.digest()),
        *moment(draft.run_after),
        *message_columns(draft.message),
        *(draft.priority, draft.key),
    )
