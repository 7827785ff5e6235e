"""To-do boards, on Postgres."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any, LiteralString

from holdfast.backends.postgres.engine import Postgres
from holdfast.backends.postgres.queries import load
from holdfast.kernel.core.checks import check_id, check_text
from holdfast.kernel.core.codec import decode_json, encode_json
from holdfast.kernel.core.errors import IllegalTransitionError
from holdfast.kernel.storage.tasks import (
    Task,
    TaskList,
    TaskStatus,
    TaskStore,
    check_status,
    check_title,
    check_titles,
    new_board,
    new_cards,
)

_SQL = load("boards")
_TERMINAL = [status.value for status in TaskStatus if status.terminal]


class PostgresBoards(TaskStore):
    """``TaskStore`` in two tables: boards, and cards that go with their board.

    ::

        boards = PostgresBoards(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def create_task_list(
        self,
        conversation_id: str,
        task_titles: list[str],
        *,
        agent_id: str = "",
        agent_label: str = "",
        parent_agent_id: str | None = None,
        max_retries: int = 3,
    ) -> TaskList:
        """Make or replace the board of an agent."""
        board = new_board(
            conversation_id,
            task_titles,
            agent_id=agent_id,
            agent_label=agent_label,
            parent_agent_id=parent_agent_id,
            max_retries=max_retries,
        )
        await self._engine.fetch(
            _SQL["create"],
            self._tenant,
            board.id,
            conversation_id,
            agent_id,
            encode_json(agent_label),
            parent_agent_id,
            max_retries,
            [card.id for card in board.tasks],
            [encode_json(card.title) for card in board.tasks],
            safe=False,
        )
        return board

    async def get_task_list(self, task_list_id: str) -> TaskList | None:
        """A board by its id."""
        check_id("task_list_id", task_list_id)
        rows = await self._engine.fetch(_SQL["by_id"], self._tenant, task_list_id, safe=True)
        return next(iter(_boards(rows)), None)

    async def get_by_conversation(self, conversation_id: str) -> TaskList | None:
        """The main board of a conversation."""
        return next(iter(await self._by_conversation(conversation_id, main=True)), None)

    async def get_boards_by_conversation(self, conversation_id: str) -> list[TaskList]:
        """All boards of a conversation."""
        return await self._by_conversation(conversation_id, main=False)

    async def update_status(
        self, task_list_id: str, task_id: str, status: TaskStatus | str, note: str = ""
    ) -> Task | None:
        """Move a card."""
        wanted = check_status(status)
        text = encode_json(check_text("note", note))
        row = await self._on_card(
            _SQL["move"], task_list_id, task_id, wanted.value, text, _TERMINAL
        )
        return _moved(row, task_id, wanted)

    async def add_tasks(self, task_list_id: str, titles: list[str]) -> list[Task]:
        """Append cards to a board."""
        check_id("task_list_id", task_list_id)
        cards = new_cards(check_titles("titles", titles))
        first = await self._engine.fetchval(
            _SQL["add"],
            self._tenant,
            task_list_id,
            [card.id for card in cards],
            [encode_json(card.title) for card in cards],
            safe=False,
        )
        return [replace(card, order=first + card.order) for card in cards]

    async def delete_task(self, task_list_id: str, task_id: str) -> bool:
        """Remove a card."""
        return await self._on_card(_SQL["delete"], task_list_id, task_id) is not None

    async def increment_retry(self, task_list_id: str, task_id: str) -> Task | None:
        """Try a card once more."""
        row = await self._on_card(_SQL["retry"], task_list_id, task_id, _TERMINAL)
        return _moved(row, task_id, TaskStatus.IN_PROGRESS) if row and row["may_retry"] else None

    async def force_retry(self, task_list_id: str, task_id: str) -> Task | None:
        """Start a card afresh."""
        row = await self._on_card(_SQL["revive"], task_list_id, task_id)
        return _card(row) if row else None

    async def update_task_title(self, task_list_id: str, task_id: str, title: str) -> Task | None:
        """Rename a card."""
        text = encode_json(check_title(title))
        row = await self._on_card(_SQL["rename"], task_list_id, task_id, text)
        return _card(row) if row else None

    async def _by_conversation(self, conversation_id: str, *, main: bool) -> list[TaskList]:
        check_id("conversation_id", conversation_id)
        rows = await self._engine.fetch(
            _SQL["by_conversation"], self._tenant, conversation_id, main, safe=True
        )
        return _boards(rows)

    async def _on_card(
        self, sql: LiteralString, task_list_id: str, task_id: str, *args: Any
    ) -> Any:
        """One statement on one card; no row where there is no such card."""
        check_id("task_list_id", task_list_id)
        check_id("task_id", task_id)
        return await self._engine.fetchrow(
            sql, self._tenant, task_list_id, task_id, *args, safe=False
        )


def _boards(rows: Iterable[Any]) -> list[TaskList]:
    """The boards in rows of one card each, or of none."""
    found = []
    for board_id, group in groupby(rows, key=lambda row: row["board_id"]):
        cards = list(group)
        facts = cards[0]
        board = TaskList(
            board_id,
            facts["conversation_id"],
            [_card(row) for row in cards if row["id"] is not None],
            facts["max_retries"],
            facts["agent_id"],
            decode_json(facts["agent_label"]),
            facts["parent_agent_id"],
        )
        found.append(board)
    return found


def _card(row: Any) -> Task:
    return Task(
        row["id"],
        decode_json(row["title"]),
        TaskStatus(row["status"]),
        row["position"],
        row["retry_count"],
        decode_json(row["note"]),
    )


def _moved(row: Any, card_id: str, wanted: TaskStatus) -> Task | None:
    """The card where it is now; the row has only the old status if it may not go there."""
    if row is None:
        return None
    if row["id"] is None:
        raise IllegalTransitionError("card", card_id, from_state=row["was"], to_state=wanted.value)
    return _card(row)
