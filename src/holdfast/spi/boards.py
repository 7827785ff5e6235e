"""To-do boards, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from holdfast.spi.id_page import IdPage
from holdfast.values.boards import ConversationSummary, Task, TaskList, TaskStatus


class CardChange(NamedTuple):
    """What to change of a card. What is ``None`` stays as it is."""

    status: TaskStatus | None = None
    title: str | None = None
    note: str | None = None
    retry_count: int | None = None


class CardMove(NamedTuple):
    """The result of a change: the card's status and version before, and the card if changed."""

    was: TaskStatus
    version: int
    card: Task | None


class BoardStorage(Protocol):
    """The boards of one tenant. The caller checks all arguments.

    A card is found through its own board only. Methods return ``None`` if there is no such card.
    """

    @abstractmethod
    async def put(self, board: TaskList) -> datetime:
        """Store a board with its cards, and replace the agent's previous board, in one step.

        Returns the ``updated_at`` of the cards.
        """

    @abstractmethod
    async def get(self, board_id: str) -> TaskList | None:
        """Return a board with its cards in order."""

    @abstractmethod
    async def list(self, conversation_id: str) -> Sequence[TaskList]:
        """Return the boards of a conversation in order of creation."""

    @abstractmethod
    async def conversations(self, page: IdPage) -> Sequence[ConversationSummary]:
        """Return a page of the conversations that have a board, by id."""

    @abstractmethod
    async def main(self, conversation_id: str) -> TaskList | None:
        """Return the board of the agent ``""``, or else the earliest."""

    @abstractmethod
    async def delete(self, board_id: str) -> bool:
        """Delete a board with its cards. Returns whether it was there."""

    @abstractmethod
    async def add_cards(self, board_id: str, cards: Sequence[Task]) -> tuple[int, datetime]:
        """Append cards in one step. Returns the first one's ``order``, and their ``updated_at``.

        Raises ``NotFoundError("board", board_id)`` if there is no such board.
        """

    @abstractmethod
    async def delete_card(self, board_id: str, card_id: str) -> bool:
        """Delete a card, and return whether there was one."""

    @abstractmethod
    async def change_card(
        self,
        board_id: str,
        card_id: str,
        change: CardChange,
        *,
        expected_version: int | None,
        forced: bool,
    ) -> CardMove | None:
        """Change a card, if it has ``expected_version`` (``None``: whatever its version).

        A card in a terminal state gets no other status, unless ``forced``.
        """

    @abstractmethod
    async def retry_card(self, board_id: str, card_id: str) -> CardMove | None:
        """Count one more try and set the status to in progress, unless the state is terminal.

        Returns ``None`` and changes nothing if the retries of the board are used up.
        """
