"""To-do boards, as an engine stores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from holdfast.spi.id_page import IdPage
from holdfast.values.boards import ConversationSummary, Task, TaskList, TaskStatus


class CardMove(NamedTuple):
    """The result of a move: the card's status before, and the card if it was moved."""

    was: TaskStatus
    card: Task | None


class BoardStorage(Protocol):
    """The boards of one tenant. The caller checks all arguments.

    A card is found through its own board only. Methods return ``None`` if there is no such card.
    """

    @abstractmethod
    async def put(self, board: TaskList) -> None:
        """Store a board with its cards, and replace the agent's previous board, in one step."""

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
    async def add_cards(self, board_id: str, cards: Sequence[Task]) -> int:
        """Append cards in one step. Returns the ``order`` of the first new card.

        Raises ``NotFoundError("board", board_id)`` if there is no such board.
        """

    @abstractmethod
    async def delete_card(self, board_id: str, card_id: str) -> bool:
        """Delete a card, and return whether there was one."""

    @abstractmethod
    async def move_card(
        self, board_id: str, card_id: str, status: TaskStatus, note: str
    ) -> CardMove | None:
        """Set status and note, unless the card is in another terminal state.

        An empty ``note`` keeps the one that is there.
        """

    @abstractmethod
    async def retry_card(self, board_id: str, card_id: str) -> CardMove | None:
        """Count one more try and set the status to in progress, unless the state is terminal.

        Returns ``None`` and changes nothing if the retries of the board are used up.
        """

    @abstractmethod
    async def reset_card(self, board_id: str, card_id: str) -> Task | None:
        """Set the status to planned, the count of tries to zero and the note to empty."""

    @abstractmethod
    async def rename_card(self, board_id: str, card_id: str, title: str) -> Task | None:
        """Set the title."""
