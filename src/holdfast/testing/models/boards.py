"""A naive ``TaskStore``: one list of boards, each a dict with a list of dicts."""

from __future__ import annotations

from typing import Any

from holdfast.testing.models.shared import Shared
from holdfast.values.boards import ConversationSummary, Task, TaskList, TaskStatus
from holdfast.values.errors import IllegalTransitionError, NotFoundError, VersionConflictError


class NaiveBoards:
    """Boards in the order of their creation, searched from the front."""

    def __init__(self, shared: Shared, *, tenant: str = "default") -> None:
        self.tenant = tenant
        self.boards = shared.table("boards")
        self.ids = shared.table("board ids")

    def _new_id(self) -> str:
        self.ids.append(None)
        return f"id {len(self.ids)}"

    def _find(self, board_id: str, card_id: str) -> tuple[Any, Any]:
        for board in self.boards:
            if board["tenant"] == self.tenant and board["id"] == board_id:
                for card in board["cards"]:
                    if card["id"] == card_id:
                        return board, card
                return board, None
        return None, None

    def _add(self, board: dict[str, Any], titles: list[str]) -> list[Task]:
        added = []
        for title in titles:
            if title.strip() != "":
                orders = [card["order"] for card in board["cards"]]
                card = {
                    "id": self._new_id(),
                    "title": title.strip(),
                    "status": "planned",
                    "order": max(orders) + 1 if orders else 0,
                    "retry_count": 0,
                    "note": "",
                    "version": 1,
                }
                board["cards"].append(card)
                added.append(_card(card))
        return added

    async def create_task_list(
        self, conversation_id: str, task_titles: list[str], *, agent_id: str = "", **facts: Any
    ) -> TaskList:
        """Drop the board of the pair, then add one at the end."""
        key = (self.tenant, conversation_id, agent_id)
        self.boards[:] = [board for board in self.boards if board["key"] != key]
        board = {"key": key, "tenant": self.tenant, "id": self._new_id(), "cards": [], **facts}
        self.boards.append(board)
        self._add(board, task_titles)
        return _board(board)

    async def get_task_list(self, task_list_id: str) -> TaskList | None:
        """By id."""
        board, _ = self._find(task_list_id, "")
        return _board(board) if board else None

    async def get_by_conversation(self, conversation_id: str) -> TaskList | None:
        """The board without an agent, else the first."""
        boards = await self.get_boards_by_conversation(conversation_id)
        for board in boards:
            if board.agent_id == "":
                return board
        return boards[0] if boards else None

    async def get_boards_by_conversation(self, conversation_id: str) -> list[TaskList]:
        """All of them."""
        return [
            _board(board)
            for board in self.boards
            if board["key"][:2] == (self.tenant, conversation_id)
        ]

    async def list_conversations(
        self, *, limit: int = 50, after: str | None = None
    ) -> list[ConversationSummary]:
        """Count the cards of each, one by one."""
        mine = [board for board in self.boards if board["tenant"] == self.tenant]
        found = []
        for name in sorted({board["key"][1] for board in mine}):
            boards = [board for board in mine if board["key"][1] == name]
            states = [card["status"] for board in boards for card in board["cards"]]
            left = [one for one in states if one not in ("succeeded", "abandoned")]
            if after is None or name > after:
                found.append(ConversationSummary(name, len(boards), len(states), len(left)))
        return found[:limit]

    async def update_status(
        self,
        task_list_id: str,
        task_id: str,
        status: str,
        note: str = "",
        *,
        expected_version: int | None = None,
    ) -> Task | None:
        """Any state after an open one; only itself after a terminal one."""
        _, card = self._find(task_list_id, task_id)
        if card is None:
            return None
        _check_version(card, expected_version)
        if card["status"] in ("succeeded", "abandoned") and card["status"] != status:
            raise IllegalTransitionError(
                "card", task_id, from_state=card["status"], to_state=status
            )
        card["status"] = str(status)
        if note != "":
            card["note"] = note
        return _changed(card)

    async def add_tasks(self, task_list_id: str, titles: list[str]) -> list[Task]:
        """One by one."""
        board, _ = self._find(task_list_id, "")
        if board is None:
            raise NotFoundError("board", task_list_id)
        return self._add(board, titles)

    async def delete_task_list(self, task_list_id: str) -> bool:
        """Take it out of the list."""
        board, _ = self._find(task_list_id, "")
        if board is not None:
            self.boards.remove(board)
        return board is not None

    async def delete_task(self, task_list_id: str, task_id: str) -> bool:
        """Take it out of the list."""
        board, card = self._find(task_list_id, task_id)
        if card is not None:
            board["cards"].remove(card)
        return card is not None

    async def increment_retry(self, task_list_id: str, task_id: str) -> Task | None:
        """Count up to the maximum."""
        board, card = self._find(task_list_id, task_id)
        if card is None or card["retry_count"] == board["max_retries"]:
            return None
        if card["status"] in ("succeeded", "abandoned"):
            raise IllegalTransitionError(
                "card", task_id, from_state=card["status"], to_state="in_progress"
            )
        card["retry_count"] += 1
        card["status"] = "in_progress"
        return _changed(card)

    async def force_retry(self, task_list_id: str, task_id: str) -> Task | None:
        """Back to the start."""
        _, card = self._find(task_list_id, task_id)
        if card is None:
            return None
        card.update(status="planned", retry_count=0, note="")
        return _changed(card)

    async def update_task_title(
        self, task_list_id: str, task_id: str, title: str, *, expected_version: int | None = None
    ) -> Task | None:
        """Rename."""
        _, card = self._find(task_list_id, task_id)
        if card is None:
            return None
        _check_version(card, expected_version)
        card["title"] = title.strip()
        return _changed(card)

    async def update_task_note(
        self, task_list_id: str, task_id: str, note: str, *, expected_version: int | None = None
    ) -> Task | None:
        """Write another note."""
        _, card = self._find(task_list_id, task_id)
        if card is None:
            return None
        _check_version(card, expected_version)
        card["note"] = note
        return _changed(card)


def _check_version(card: dict[str, Any], expected: int | None) -> None:
    if expected is not None and card["version"] != expected:
        raise VersionConflictError("card", card["id"], expected=expected, actual=card["version"])


def _changed(card: dict[str, Any]) -> Task:
    card["version"] += 1
    return _card(card)


def _card(card: dict[str, Any]) -> Task:
    return Task(**{**card, "status": TaskStatus(card["status"])})


def _board(board: dict[str, Any]) -> TaskList:
    _, conversation_id, agent_id = board["key"]
    return TaskList(
        board["id"],
        conversation_id,
        [_card(card) for card in board["cards"]],
        max_retries=board["max_retries"],
        agent_id=agent_id,
    )
