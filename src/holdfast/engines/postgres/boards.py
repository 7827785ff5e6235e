"""To-do boards, on Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.boards import BoardStorage, CardChange, CardMove
from holdfast.spi.id_page import IdPage
from holdfast.values.boards import ConversationSummary, Task, TaskList, TaskStatus
from holdfast.values.codec import decode_json, encode_json

_SQL = load("boards")
_TERMINAL = [status.value for status in TaskStatus if status.terminal]


class PostgresBoards(BoardStorage):
    """``BoardStorage`` in two tables: boards, and cards, which are deleted with their board.

    ::

        boards = PostgresBoards(engine, tenant="acme")
    """

    def __init__(self, engine: Postgres, *, tenant: str = "default") -> None:
        self._engine = engine
        self._tenant = tenant

    async def put(self, board: TaskList) -> datetime:
        """Store a board; it replaces the earlier board of its agent."""
        at: datetime = await self._engine.fetchval(
            _SQL["create"],
            *(self._tenant, board.id, board.conversation_id, board.agent_id),
            *(encode_json(board.agent_label), board.parent_agent_id, board.max_retries),
            *_columns(board.tasks),
            safe=False,
        )
        return at

    async def get(self, board_id: str) -> TaskList | None:
        """Return a board."""
        rows = await self._engine.fetch(_SQL["by_id"], self._tenant, board_id, safe=True)
        return next(iter(_boards(rows)), None)

    async def list(self, conversation_id: str) -> Sequence[TaskList]:
        """Return the boards of a conversation in order of creation."""
        return await self._of(conversation_id, main=False)

    async def conversations(self, page: IdPage) -> Sequence[ConversationSummary]:
        """Return a page of the conversations that have a board."""
        args = (self._tenant, page.after, *page.ranges(), page.limit, _TERMINAL)
        rows = await self._engine.fetch(_SQL["conversations"], *args, safe=True)
        return [ConversationSummary(*row) for row in rows]

    async def main(self, conversation_id: str) -> TaskList | None:
        """Return the board of the agent without a name, or else the oldest board; or ``None``."""
        return next(iter(await self._of(conversation_id, main=True)), None)

    async def delete(self, board_id: str) -> bool:
        """Delete a board."""
        args = (self._tenant, board_id)
        return bool(await self._engine.fetchval(_SQL["delete_board"], *args, safe=False))

    async def add_cards(self, board_id: str, cards: Sequence[Task]) -> tuple[int, datetime]:
        """Append cards. Returns the position of the first one, and the time."""
        args = (self._tenant, board_id, *_columns(cards))
        row = await self._engine.fetchrow(_SQL["add"], *args, safe=False)
        return row["first"], row["at"]

    async def delete_card(self, board_id: str, card_id: str) -> bool:
        """Delete a card."""
        args = (self._tenant, board_id, card_id)
        return bool(await self._engine.fetchval(_SQL["delete"], *args, safe=False))

    async def change_card(
        self,
        board_id: str,
        card_id: str,
        change: CardChange,
        *,
        expected_version: int | None,
        forced: bool,
    ) -> CardMove | None:
        """Change a card. Returns ``None`` if there is no such card."""
        row = await self._engine.fetchrow(
            _SQL["change"],
            *(self._tenant, board_id, card_id, change.status and change.status.value),
            *(_text(change.title), _text(change.note), change.retry_count),
            *([] if forced else _TERMINAL, expected_version),
            safe=False,
        )
        return _moved(row)

    async def retry_card(self, board_id: str, card_id: str) -> CardMove | None:
        """Set a card to in progress and count a retry; ``None`` if it has no retries left."""
        args = (self._tenant, board_id, card_id, _TERMINAL)
        return _moved(await self._engine.fetchrow(_SQL["retry"], *args, safe=False))

    async def _of(self, conversation_id: str, *, main: bool) -> Sequence[TaskList]:
        sql = _SQL["by_conversation"]
        rows = await self._engine.fetch(sql, self._tenant, conversation_id, main, safe=True)
        return _boards(rows)


def _text(text: str | None) -> str | None:
    return None if text is None else encode_json(text)


def _columns(cards: Sequence[Task]) -> tuple[list[str], list[str]]:
    return [card.id for card in cards], [encode_json(card.title) for card in cards]


def _boards(rows: Iterable[Any]) -> list[TaskList]:
    """Return boards from rows with one card each; an empty board has one row without a card."""
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
        row["version"],
        row["updated_at"],
    )


def _moved(row: Any) -> CardMove | None:
    """Return the change from its row, which has no card if the change was not allowed."""
    if row is None:
        return None
    if row["id"] is None:
        return CardMove(TaskStatus(row["was"]), row["had"], None)
    return CardMove(TaskStatus(row["was"]), row["had"], _card(row))
