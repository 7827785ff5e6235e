"""To-do boards, as agents use them."""

from __future__ import annotations

from dataclasses import replace

from holdfast.contracts.front import Front
from holdfast.kernel.storage.boards import (
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
from holdfast.spi.boards import BoardStorage, CardMove
from holdfast.values.checks import check_id, check_text
from holdfast.values.errors import IllegalTransitionError


class Boards(Front, TaskStore):
    """``TaskStore`` on any engine.

    ::

        boards = Boards(PostgresBoards(engine, tenant="acme"))
    """

    def __init__(self, storage: BoardStorage) -> None:
        self._storage = storage

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
        """Make the board of an agent in a conversation; the board it had is replaced."""
        board = new_board(
            conversation_id,
            task_titles,
            agent_id=agent_id,
            agent_label=agent_label,
            parent_agent_id=parent_agent_id,
            max_retries=max_retries,
        )
        self._limits.check_value("task_titles", *(card.title for card in board.tasks))
        stored = replace(
            board,
            id=self._scope.id("id", board.id),
            conversation_id=self._scope.id("conversation_id", board.conversation_id),
        )
        await self._storage.put(stored)
        return board

    async def get_task_list(self, task_list_id: str) -> TaskList | None:
        """A board by its id."""
        found = await self._storage.get(self._scope.id("task_list_id", task_list_id))
        return found and self._own(found)

    async def get_by_conversation(self, conversation_id: str) -> TaskList | None:
        """The main board of a conversation: that of the agent ``""``, else the earliest."""
        found = await self._storage.main(self._scope.id("conversation_id", conversation_id))
        return found and self._own(found)

    async def get_boards_by_conversation(self, conversation_id: str) -> list[TaskList]:
        """All boards of a conversation, in order of creation."""
        found = await self._storage.list(self._scope.id("conversation_id", conversation_id))
        return [self._own(board) for board in found]

    async def update_status(
        self, task_list_id: str, task_id: str, status: TaskStatus | str, note: str = ""
    ) -> Task | None:
        """Move a card; an empty ``note`` keeps the one it has."""
        wanted, text = check_status(status), check_text("note", note)
        self._limits.check_value("note", text)
        moved = await self._storage.move_card(*self._card(task_list_id, task_id), wanted, text)
        return _moved(task_id, moved, wanted)

    async def add_tasks(self, task_list_id: str, titles: list[str]) -> list[Task]:
        """Append cards to a board; ``NotFoundError`` if there is no such board."""
        board_id = self._scope.id("task_list_id", task_list_id)
        cards = new_cards(check_titles("titles", titles))
        self._limits.check_value("titles", *(card.title for card in cards))
        first = await self._storage.add_cards(board_id, cards)
        return [replace(card, order=first + card.order) for card in cards]

    async def delete_task(self, task_list_id: str, task_id: str) -> bool:
        """Remove a card; whether there was one."""
        return await self._storage.delete_card(*self._card(task_list_id, task_id))

    async def increment_retry(self, task_list_id: str, task_id: str) -> Task | None:
        """Try a card once more: ``None`` when its retries are used up."""
        moved = await self._storage.retry_card(*self._card(task_list_id, task_id))
        return _moved(task_id, moved, TaskStatus.IN_PROGRESS)

    async def force_retry(self, task_list_id: str, task_id: str) -> Task | None:
        """Start a card afresh, whatever its status and its retries: a person decides."""
        return await self._storage.reset_card(*self._card(task_list_id, task_id))

    async def update_task_title(self, task_list_id: str, task_id: str, title: str) -> Task | None:
        """Rename a card."""
        stripped = check_title(title)
        self._limits.check_value("title", stripped)
        return await self._storage.rename_card(*self._card(task_list_id, task_id), stripped)

    def _card(self, task_list_id: str, task_id: str) -> tuple[str, str]:
        return self._scope.id("task_list_id", task_list_id), check_id("task_id", task_id)

    def _own(self, board: TaskList) -> TaskList:
        if not self._scope.owner:
            return board
        own = self._scope.own
        return replace(board, id=own(board.id), conversation_id=own(board.conversation_id))


def _moved(card_id: str, moved: CardMove | None, wanted: TaskStatus) -> Task | None:
    if moved is not None and moved.card is None:
        raise IllegalTransitionError(
            "card", card_id, from_state=moved.was.value, to_state=wanted.value
        )
    return moved and moved.card
