"""To-do boards, on Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, LiteralString

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.queries import load
from holdfast.spi.boards import BoardStorage, CardMove
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

    async def put(self, board: TaskList) -> None:
        """Store a board; it replaces the earlier board of its agent."""
        await self._engine.fetch(
            _SQL["create"],
            *(self._tenant, board.id, board.conversation_id, board.agent_id),
            *(encode_json(board.agent_label), board.parent_agent_id, board.max_retries),
            *_columns(board.tasks),
            safe=False,
        )

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

    async def add_cards(self, board_id: str, cards: Sequence[Task]) -> int:
        """Append cards. Returns the position of the first one."""
        return int(
            await self._engine.fetchval(
                _SQL["add"], self._tenant, board_id, *_columns(cards), safe=False
            )
        )

    async def delete_card(self, board_id: str, card_id: str) -> bool:
        """Delete a card."""
        return await self._on_card(_SQL["delete"], board_id, card_id) is not None

    async def move_card(
        self, board_id: str, card_id: str, status: TaskStatus, note: str
    ) -> CardMove | None:
        """Set the status and note of a card. Returns ``None`` if there is no such card."""
        args = (status.value, encode_json(note), _TERMINAL)
        return _moved(await self._on_card(_SQL["move"], board_id, card_id, *args))

    async def retry_card(self, board_id: str, card_id: str) -> CardMove | None:
        """Set a card to in progress and count a retry; ``None`` if it has no retries left."""
        row = await self._on_card(_SQL["retry"], board_id, card_id, _TERMINAL)
        return _moved(row) if row and row["may_retry"] else None

    async def reset_card(self, board_id: str, card_id: str) -> Task | None:
        """Reset a card to planned, with no retries and no note. ``None`` if it is missing."""
        row = await self._on_card(_SQL["revive"], board_id, card_id)
        return _card(row) if row else None

    async def rename_card(self, board_id: str, card_id: str, title: str) -> Task | None:
        """Set the title of a card. Returns ``None`` if there is no such card."""
        row = await self._on_card(_SQL["rename"], board_id, card_id, encode_json(title))
        return _card(row) if row else None

    async def _of(self, conversation_id: str, *, main: bool) -> Sequence[TaskList]:
        sql = _SQL["by_conversation"]
        rows = await self._engine.fetch(sql, self._tenant, conversation_id, main, safe=True)
        return _boards(rows)

    async def _on_card(self, sql: LiteralString, board_id: str, card_id: str, *args: Any) -> Any:
        """Run a statement on one card. Return its row, or ``None`` if there is no such card."""
        return await self._engine.fetchrow(sql, self._tenant, board_id, card_id, *args, safe=False)


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
    )


def _moved(row: Any) -> CardMove | None:
    """Return the move from its row. If the move is not allowed, the row has only the old status."""
    if row is None:
        return None
    return CardMove(TaskStatus(row["was"]), None if row["id"] is None else _card(row))
