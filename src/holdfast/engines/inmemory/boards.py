"""To-do boards, in process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.boards import BoardStorage, CardChange, CardMove
from holdfast.spi.id_page import IdPage
from holdfast.values.boards import ConversationSummary, Task, TaskList, TaskStatus
from holdfast.values.errors import NotFoundError


@dataclass
class _Board:
    facts: TaskList
    cards: dict[str, Task]

    def view(self) -> TaskList:
        return replace(self.facts, tasks=list(self.cards.values()))


@dataclass
class _Data:
    boards: dict[str, _Board] = field(default_factory=dict)
    conversations: dict[str, dict[str, _Board]] = field(default_factory=dict)


class InMemoryBoards(BoardStorage):
    """Stores boards in dicts, which keep the order of creation.

    >>> boards = InMemoryBoards(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._data = engine.table(tenant, _Data)
        self._now = engine.now

    async def put(self, board: TaskList) -> datetime:
        """Store a board; it replaces the earlier board of its agent."""
        siblings = self._data.conversations.setdefault(board.conversation_id, {})
        replaced = siblings.pop(board.agent_id, None)
        if replaced:
            del self._data.boards[replaced.facts.id]
        at = self._now()
        kept = _Board(board, {card.id: replace(card, updated_at=at) for card in board.tasks})
        siblings[board.agent_id] = self._data.boards[board.id] = kept
        return at

    async def get(self, board_id: str) -> TaskList | None:
        """Return a board."""
        board = self._data.boards.get(board_id)
        return board.view() if board else None

    async def list(self, conversation_id: str) -> Sequence[TaskList]:
        """Return the boards of a conversation in order of creation."""
        boards = self._data.conversations.get(conversation_id, {})
        return [board.view() for board in boards.values()]

    async def conversations(self, page: IdPage) -> Sequence[ConversationSummary]:
        """Return a page of the conversations that have a board."""
        return [self._summary(one) for one in page.of(self._data.conversations)]

    def _summary(self, conversation: str) -> ConversationSummary:
        boards = self._data.conversations[conversation].values()
        cards = [card for board in boards for card in board.cards.values()]
        left = sum(not card.status.terminal for card in cards)
        return ConversationSummary(conversation, len(boards), len(cards), left)

    async def main(self, conversation_id: str) -> TaskList | None:
        """Return the board of the agent without a name, or else the oldest board; or ``None``."""
        boards = self._data.conversations.get(conversation_id, {})
        board = boards.get("") or next(iter(boards.values()), None)
        return board.view() if board else None

    async def delete(self, board_id: str) -> bool:
        """Delete a board."""
        board = self._data.boards.pop(board_id, None)
        if board is None:
            return False
        siblings = self._data.conversations[board.facts.conversation_id]
        del siblings[board.facts.agent_id]
        if not siblings:
            del self._data.conversations[board.facts.conversation_id]
        return True

    async def add_cards(self, board_id: str, cards: Sequence[Task]) -> tuple[int, datetime]:
        """Append cards. Returns the position of the first one, and the time."""
        board = self._data.boards.get(board_id)
        if board is None:
            raise NotFoundError("board", board_id)
        first = max((card.order for card in board.cards.values()), default=-1) + 1
        at = self._now()
        for card in cards:
            board.cards[card.id] = replace(card, order=first + card.order, updated_at=at)
        return first, at

    async def delete_card(self, board_id: str, card_id: str) -> bool:
        """Delete a card."""
        board = self._data.boards.get(board_id)
        return board is not None and board.cards.pop(card_id, None) is not None

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
        card = self._card(board_id, card_id)
        if card is None:
            return None
        ended = card.status.terminal and change.status not in {None, card.status}
        if expected_version not in {None, card.version} or (ended and not forced):
            return CardMove(card.status, card.version, None)
        fresh = {name: value for name, value in change._asdict().items() if value is not None}
        return self._put(board_id, card, replace(card, **fresh))

    async def retry_card(self, board_id: str, card_id: str) -> CardMove | None:
        """Set a card to in progress and count a retry; ``None`` if it has no retries left."""
        card = self._card(board_id, card_id)
        if card is None or card.retry_count >= self._data.boards[board_id].facts.max_retries:
            return None
        if card.status.terminal:
            return CardMove(card.status, card.version, None)
        tried = replace(card, status=TaskStatus.IN_PROGRESS, retry_count=card.retry_count + 1)
        return self._put(board_id, card, tried)

    def _card(self, board_id: str, card_id: str) -> Task | None:
        board = self._data.boards.get(board_id)
        return board.cards.get(card_id) if board else None

    def _put(self, board_id: str, before: Task, after: Task) -> CardMove:
        stored = replace(after, version=before.version + 1, updated_at=self._now())
        self._data.boards[board_id].cards[before.id] = stored
        return CardMove(before.status, before.version, stored)
