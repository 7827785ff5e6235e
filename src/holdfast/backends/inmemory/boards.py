"""To-do boards, in process."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from holdfast.backends.inmemory.engine import InMemory
from holdfast.kernel.core.checks import check_id, check_text
from holdfast.kernel.core.errors import IllegalTransitionError, NotFoundError
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


class InMemoryBoards(TaskStore):
    """``TaskStore`` in dicts, which keep the order of creation.

    >>> boards = InMemoryBoards(InMemory(), tenant="acme")
    """

    def __init__(self, engine: InMemory, *, tenant: str = "default") -> None:
        self._data = engine.table(tenant, _Data)

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
        facts = new_board(
            conversation_id,
            task_titles,
            agent_id=agent_id,
            agent_label=agent_label,
            parent_agent_id=parent_agent_id,
            max_retries=max_retries,
        )
        board = _Board(facts, _by_id(facts.tasks))
        siblings = self._data.conversations.setdefault(conversation_id, {})
        replaced = siblings.pop(agent_id, None)
        if replaced:
            del self._data.boards[replaced.facts.id]
        siblings[agent_id] = self._data.boards[facts.id] = board
        return board.view()

    async def get_task_list(self, task_list_id: str) -> TaskList | None:
        """A board by its id."""
        board = self._board(task_list_id)
        return board.view() if board else None

    async def get_by_conversation(self, conversation_id: str) -> TaskList | None:
        """The main board of a conversation."""
        boards = self._boards(conversation_id)
        if not boards:
            return None
        return (boards.get("") or next(iter(boards.values()))).view()

    async def get_boards_by_conversation(self, conversation_id: str) -> list[TaskList]:
        """All boards of a conversation."""
        return [board.view() for board in self._boards(conversation_id).values()]

    async def update_status(
        self, task_list_id: str, task_id: str, status: TaskStatus | str, note: str = ""
    ) -> Task | None:
        """Move a card."""
        wanted = check_status(status)
        check_text("note", note)
        board, card = self._card(task_list_id, task_id)
        if board is None or card is None:
            return None
        if card.status.terminal and wanted is not card.status:
            raise _illegal(card, wanted)
        return _put(board, replace(card, status=wanted, note=note or card.note))

    async def add_tasks(self, task_list_id: str, titles: list[str]) -> list[Task]:
        """Append cards to a board."""
        board = self._board(task_list_id)
        checked = check_titles("titles", titles)
        if board is None:
            raise NotFoundError("board", task_list_id)
        highest = max((card.order for card in board.cards.values()), default=-1)
        added = new_cards(checked, first=highest + 1)
        board.cards.update(_by_id(added))
        return added

    async def delete_task(self, task_list_id: str, task_id: str) -> bool:
        """Remove a card."""
        board, card = self._card(task_list_id, task_id)
        if board is None or card is None:
            return False
        del board.cards[card.id]
        return True

    async def increment_retry(self, task_list_id: str, task_id: str) -> Task | None:
        """Try a card once more."""
        board, card = self._card(task_list_id, task_id)
        if board is None or card is None or card.retry_count >= board.facts.max_retries:
            return None
        if card.status.terminal:
            raise _illegal(card, TaskStatus.IN_PROGRESS)
        tried = card.retry_count + 1
        return _put(board, replace(card, status=TaskStatus.IN_PROGRESS, retry_count=tried))

    async def force_retry(self, task_list_id: str, task_id: str) -> Task | None:
        """Start a card afresh."""
        board, card = self._card(task_list_id, task_id)
        if board is None or card is None:
            return None
        return _put(board, replace(card, status=TaskStatus.PLANNED, retry_count=0, note=""))

    async def update_task_title(self, task_list_id: str, task_id: str, title: str) -> Task | None:
        """Rename a card."""
        stripped = check_title(title)
        board, card = self._card(task_list_id, task_id)
        if board is None or card is None:
            return None
        return _put(board, replace(card, title=stripped))

    def _board(self, task_list_id: str) -> _Board | None:
        return self._data.boards.get(check_id("task_list_id", task_list_id))

    def _boards(self, conversation_id: str) -> dict[str, _Board]:
        return self._data.conversations.get(check_id("conversation_id", conversation_id), {})

    def _card(self, task_list_id: str, task_id: str) -> tuple[_Board | None, Task | None]:
        board = self._board(task_list_id)
        check_id("task_id", task_id)
        return board, board.cards.get(task_id) if board else None


def _put(board: _Board, card: Task) -> Task:
    board.cards[card.id] = card
    return card


def _by_id(cards: list[Task]) -> dict[str, Task]:
    return {card.id: card for card in cards}


def _illegal(card: Task, wanted: TaskStatus) -> IllegalTransitionError:
    return IllegalTransitionError(
        "card", card.id, from_state=card.status.value, to_state=wanted.value
    )
