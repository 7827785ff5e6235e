"""To-do boards, as agents use them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Protocol, runtime_checkable

from holdfast.contracts.board_checks import (
    check_status,
    check_title,
    check_titles,
    new_board,
    new_cards,
)
from holdfast.contracts.front import Front
from holdfast.spi.boards import BoardStorage, CardChange, CardMove
from holdfast.spi.id_page import IdPage
from holdfast.values.boards import ConversationSummary, Task, TaskList, TaskStatus
from holdfast.values.checks import check_count, check_id, check_text
from holdfast.values.errors import IllegalTransitionError, VersionConflictError


@runtime_checkable
class TaskStore(Protocol):
    """Per-agent to-do boards of a conversation.

    A conversation has one board per agent; the main agent may have an empty name (``""``). A card
    moves freely between planned, in_progress, blocked and failed; succeeded and abandoned are
    terminal. There are two kinds of retry: ``increment_retry`` is for the agent and limited by
    ``max_retries``; ``force_retry`` is for a human and not limited.

    Promises:

    - a board comes back as it was created
    - a new board has its cards planned and in the order of their titles
    - titles are stripped and blank ones dropped
    - a board without cards is legal
    - board and card ids are unique
    - create_task_list for an existing pair replaces the board
    - a replaced board is replaced in one step
    - a replaced board counts as created last
    - of many boards created at once for one pair one is left
    - an unknown board is none
    - an unknown conversation has no boards
    - get_by_conversation returns the board of the agent without a name
    - get_by_conversation without such a board returns the earliest
    - boards are ordered by creation
    - update_status sets the status and the note
    - update_status accepts the enum or its string
    - an unknown status is refused
    - an empty note keeps the old note
    - leaving a terminal state is an illegal transition
    - a terminal state may be set again
    - a failed card is not terminal
    - update_status of an unknown card is none
    - add_tasks continues after the highest order
    - add_tasks strips titles and drops blank ones
    - add_tasks to an unknown board is a not found error
    - cards added by many at once all survive, each batch in one piece
    - delete_task removes the card and says so
    - delete_task_list removes the board with its cards and says so
    - increment_retry counts and puts the card in progress
    - increment_retry keeps the note
    - at the maximum increment_retry returns none and changes nothing
    - a maximum of zero retries allows none
    - a negative maximum of retries is refused
    - increment_retry of a terminal card below the maximum is an illegal transition
    - increment_retry of an unknown card is none
    - concurrent callers can never exceed max_retries
    - force_retry resets count and note and plans a card again whatever its status
    - force_retry of an unknown card is none
    - update_task_title renames a card in any state
    - a blank new title is refused
    - update_task_note replaces or clears the note of a card in any state
    - update_task_note of an unknown card is none
    - each change of a card adds one to its version and sets its time
    - a change that expects another version is refused and changes nothing
    - of many changes that expect the same version one wins
    - update_task_title of an unknown card is none
    - a title that is not text is refused and nothing is written
    - an id that is not an id is refused
    - titles, notes and labels are any text
    - a card is reached through its own board only
    - one conversation never sees another's boards
    - one tenant never sees another's boards
    - what a store returns is the caller's to mutate
    - what a caller passed in may be changed afterwards
    - a board is still there after a reopen
    - conversations with boards are listed by code points, with their counts
    - a limit and after select a page of the conversations
    - conversations are those of the owner who asks, or those that nobody owns
    """

    @abstractmethod
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
        """Create the board of an agent in a conversation, and replace its previous board.

        ::

            board = await boards.create_task_list("c1", ["read", "write"], agent_id="planner")
        """
        ...

    @abstractmethod
    async def get_task_list(self, task_list_id: str) -> TaskList | None:
        """Return a board by its id, or ``None``.

        ::

            board = await boards.get_task_list(board.id)
        """
        ...

    @abstractmethod
    async def get_by_conversation(self, conversation_id: str) -> TaskList | None:
        """Return the main board of a conversation: that of the agent ``""``, else the earliest.

        ::

            board = await boards.get_by_conversation("c1")
        """
        ...

    @abstractmethod
    async def get_boards_by_conversation(self, conversation_id: str) -> list[TaskList]:
        """Return all boards of a conversation, in order of creation.

        ::

            for board in await boards.get_boards_by_conversation("c1"): ...
        """
        ...

    @abstractmethod
    async def update_status(
        self, task_list_id: str, task_id: str, status: TaskStatus | str, note: str = ""
    ) -> Task | None:
        """Set the status of a card; an empty ``note`` keeps its current one.

        Returns ``None`` if there is no such card. Raises ``IllegalTransitionError`` if it has
        another terminal status.

        ::

            card = await boards.update_status(board.id, card.id, "failed", "no answer")
        """
        ...

    @abstractmethod
    async def add_tasks(self, task_list_id: str, titles: list[str]) -> list[Task]:
        """Append cards to a board. Raises ``NotFoundError`` if there is no such board.

        ::

            added = await boards.add_tasks(board.id, ["check the figures"])
        """
        ...

    @abstractmethod
    async def delete_task(self, task_list_id: str, task_id: str) -> bool:
        """Delete a card. Returns whether there was one.

        ::

            gone = await boards.delete_task(board.id, card.id)
        """
        ...

    @abstractmethod
    async def increment_retry(self, task_list_id: str, task_id: str) -> Task | None:
        """Count a retry and set a card in progress. Returns ``None`` if no retries are left.

        ::

            if await boards.increment_retry(board.id, card.id) is None:
                await boards.update_status(board.id, card.id, "abandoned")
        """
        ...

    @abstractmethod
    async def force_retry(self, task_list_id: str, task_id: str) -> Task | None:
        """Set a card back to planned, with 0 retries, whatever its status: a human decided so.

        ::

            card = await boards.force_retry(board.id, card.id)
        """
        ...

    @abstractmethod
    async def update_task_title(self, task_list_id: str, task_id: str, title: str) -> Task | None:
        """Rename a card. Returns it, or ``None`` if there is no such card.

        ::

            card = await boards.update_task_title(board.id, card.id, "read twice")
        """
        ...


class Boards(Front, TaskStore):
    """Implements ``TaskStore``: checks the arguments, then calls the engine's storage.

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
        """Create the board of an agent in a conversation, and replace its previous board."""
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
        at = await self._storage.put(stored)
        return replace(board, tasks=[replace(card, updated_at=at) for card in board.tasks])

    async def get_task_list(self, task_list_id: str) -> TaskList | None:
        """Return a board by its id, or ``None``."""
        found = await self._storage.get(self._scope.id("task_list_id", task_list_id))
        return found and self._own(found)

    async def get_by_conversation(self, conversation_id: str) -> TaskList | None:
        """Return the main board of a conversation: that of the agent ``""``, else the earliest."""
        found = await self._storage.main(self._scope.id("conversation_id", conversation_id))
        return found and self._own(found)

    async def get_boards_by_conversation(self, conversation_id: str) -> list[TaskList]:
        """Return all boards of a conversation, in order of creation."""
        found = await self._storage.list(self._scope.id("conversation_id", conversation_id))
        return [self._own(board) for board in found]

    async def update_status(
        self,
        task_list_id: str,
        task_id: str,
        status: TaskStatus | str,
        note: str = "",
        *,
        expected_version: int | None = None,
    ) -> Task | None:
        """Set the status of a card; an empty ``note`` keeps its current one.

        Raises ``VersionConflictError`` if the card does not have ``expected_version``. ::

            await boards.update_status(board.id, card.id, "blocked", expected_version=card.version)
        """
        wanted, text = check_status(status), check_text("note", note)
        self._limits.check_value("note", text)
        change = CardChange(status=wanted, note=text or None)
        return await self._change(task_list_id, task_id, change, expected_version)

    async def add_tasks(self, task_list_id: str, titles: list[str]) -> list[Task]:
        """Append cards to a board. Raises ``NotFoundError`` if there is no such board."""
        board_id = self._scope.id("task_list_id", task_list_id)
        cards = new_cards(check_titles("titles", titles))
        self._limits.check_value("titles", *(card.title for card in cards))
        first, at = await self._storage.add_cards(board_id, cards)
        return [replace(card, order=first + card.order, updated_at=at) for card in cards]

    async def list_conversations(
        self, *, limit: int = 50, after: str | None = None
    ) -> list[ConversationSummary]:
        """Return the conversations that have a board, by id, with how many cards they have.

        ``after`` is the id of the last one of the previous page. ::

            for one in await boards.list_conversations():
                print(one.id, one.open_cards)
        """
        prefix, other = self._scope.threads()
        last = "" if after is None else self._scope.id("after", after)
        page = IdPage(prefix, other, last, check_count("limit", limit))
        found = await self._storage.conversations(page) if page.limit else ()
        return [replace(one, id=self._scope.own(one.id)) for one in found]

    async def delete_task_list(self, task_list_id: str) -> bool:
        """Delete a board with its cards. Returns whether there was one.

        ::

            gone = await boards.delete_task_list(board.id)
        """
        return await self._storage.delete(self._scope.id("task_list_id", task_list_id))

    async def delete_task(self, task_list_id: str, task_id: str) -> bool:
        """Delete a card. Returns whether there was one."""
        return await self._storage.delete_card(*self._card(task_list_id, task_id))

    async def increment_retry(self, task_list_id: str, task_id: str) -> Task | None:
        """Count a retry and set a card in progress. Returns ``None`` if no retries are left."""
        moved = await self._storage.retry_card(*self._card(task_list_id, task_id))
        return _moved(task_id, moved, TaskStatus.IN_PROGRESS, None)

    async def force_retry(self, task_list_id: str, task_id: str) -> Task | None:
        """Set a card back to planned, with 0 retries, whatever its status: a human decided so."""
        change = CardChange(TaskStatus.PLANNED, note="", retry_count=0)
        return await self._change(task_list_id, task_id, change, None, forced=True)

    async def update_task_title(
        self, task_list_id: str, task_id: str, title: str, *, expected_version: int | None = None
    ) -> Task | None:
        """Rename a card. Returns it, or ``None`` if there is no such card.

        Raises ``VersionConflictError`` if the card does not have ``expected_version``. ::

            await boards.update_task_title(board.id, card.id, "read", expected_version=card.version)
        """
        stripped = check_title(title)
        self._limits.check_value("title", stripped)
        change = CardChange(title=stripped)
        return await self._change(task_list_id, task_id, change, expected_version)

    async def update_task_note(
        self, task_list_id: str, task_id: str, note: str, *, expected_version: int | None = None
    ) -> Task | None:
        """Replace the note of a card; ``""`` clears it. Returns ``None`` if there is no such card.

        Raises ``VersionConflictError`` if the card does not have ``expected_version``. ::

            card = await boards.update_task_note(board.id, card.id, "waits for the figures")
        """
        text = check_text("note", note)
        self._limits.check_value("note", text)
        return await self._change(task_list_id, task_id, CardChange(note=text), expected_version)

    async def _change(
        self,
        task_list_id: str,
        task_id: str,
        change: CardChange,
        expected: int | None,
        *,
        forced: bool = False,
    ) -> Task | None:
        if expected is not None:
            check_count("expected_version", expected)
        moved = await self._storage.change_card(
            *self._card(task_list_id, task_id), change, expected_version=expected, forced=forced
        )
        return _moved(task_id, moved, change.status, expected)

    def _card(self, task_list_id: str, task_id: str) -> tuple[str, str]:
        return self._scope.id("task_list_id", task_list_id), check_id("task_id", task_id)

    def _own(self, board: TaskList) -> TaskList:
        if not self._scope.owner:
            return board
        own = self._scope.own
        return replace(board, id=own(board.id), conversation_id=own(board.conversation_id))


def _moved(
    card_id: str, moved: CardMove | None, wanted: TaskStatus | None, expected: int | None
) -> Task | None:
    if moved is None or moved.card is not None:
        return moved and moved.card
    if expected is not None and moved.version != expected:
        raise VersionConflictError("card", card_id, expected=expected, actual=moved.version)
    to_state = (wanted or moved.was).value
    raise IllegalTransitionError("card", card_id, from_state=moved.was.value, to_state=to_state)
