"""To-do boards, in process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from holdfast.engines.inmemory.engine import InMemory
from holdfast.spi.boards import BoardStorage, CardMove
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

    async def put(self, board: TaskList) -> None:
        """Store a board; it replaces the earlier board of its agent."""
        siblings = self._data.conversations.setdefault(board.conversation_id, {})
        replaced = siblings.pop(board.agent_id, None)
        if replaced:
            del self._data.boards[replaced.facts.id]
        kept = _Board(board, {card.id: card for card in board.tasks})
        siblings[board.agent_id] = self._data.boards[board.id] = kept

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

    async def add_cards(self, board_id: str, cards: Sequence[Task]) -> int:
        """Append cards. Returns the position of the first one."""
        board = self._data.boards.get(board_id)
        if board is None:
            raise NotFoundError("board", board_id)
        first = max((card.order for card in board.cards.values()), default=-1) + 1
        board.cards |= {card.id: replace(card, order=first + card.order) for card in cards}
        return first

    async def delete_card(self, board_id: str, card_id: str) -> bool:
        """Delete a card."""
        board = self._data.boards.get(board_id)
        return board is not None and board.cards.pop(card_id, None) is not None

    async def move_card(
        self, board_id: str, card_id: str, status: TaskStatus, note: str
    ) -> CardMove | None:
        """Set the status and note of a card. Returns ``None`` if there is no such card."""
        card = self._card(board_id, card_id)
        if card is None:
            return None
        if card.status.terminal and status is not card.status:
            return CardMove(card.status, None)
        kept = note or card.note
        return CardMove(card.status, self._put(board_id, replace(card, status=status, note=kept)))

    async def retry_card(self, board_id: str, card_id: str) -> CardMove | None:
        """Set a card to in progress and count a retry; ``None`` if it has no retries left."""
        card = self._card(board_id, card_id)
        if card is None or card.retry_count >= self._data.boards[board_id].facts.max_retries:
            return None
        if card.status.terminal:
            return CardMove(card.status, None)
        tried = replace(card, status=TaskStatus.IN_PROGRESS, retry_count=card.retry_count + 1)
        return CardMove(card.status, self._put(board_id, tried))

    async def reset_card(self, board_id: str, card_id: str) -> Task | None:
        """Reset a card to planned, with no retries and no note. ``None`` if it is missing."""
        card = self._card(board_id, card_id)
        fresh = card and replace(card, status=TaskStatus.PLANNED, retry_count=0, note="")
        return fresh and self._put(board_id, fresh)

    async def rename_card(self, board_id: str, card_id: str, title: str) -> Task | None:
        """Set the title of a card. Returns ``None`` if there is no such card."""
        card = self._card(board_id, card_id)
        return card and self._put(board_id, replace(card, title=title))

    def _card(self, board_id: str, card_id: str) -> Task | None:
        board = self._data.boards.get(board_id)
        return board.cards.get(card_id) if board else None

    def _put(self, board_id: str, card: Task) -> Task:
        self._data.boards[board_id].cards[card.id] = card
        return card
