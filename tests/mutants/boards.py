from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from holdfast.backends.inmemory.boards import InMemoryBoards
from holdfast.kernel.core.errors import IllegalTransitionError
from holdfast.kernel.storage.tasks import Task, TaskList, TaskStatus, check_titles
from tests.mutants.registry import mutant


@mutant("boards", "test_a_replaced_board_is_replaced_in_one_step")
class ReplacingDeletesFirst(InMemoryBoards):
    """The old board is gone for a moment before the new one is there."""

    async def create_task_list(
        self, conversation_id: str, task_titles: list[str], **facts: Any
    ) -> TaskList:
        check_titles("task_titles", task_titles)
        replaced = self._boards(conversation_id).pop(facts.get("agent_id", ""), None)
        if replaced:
            del self._data.boards[replaced.facts.id]
            await asyncio.sleep(0)
        return await super().create_task_list(conversation_id, task_titles, **facts)


@mutant("boards", "test_concurrent_callers_can_never_exceed_max_retries")
class RetryBoundIsCheckedTooEarly(InMemoryBoards):
    """The count is read, and written a moment later."""

    async def increment_retry(self, task_list_id: str, task_id: str) -> Task | None:
        board, card = self._card(task_list_id, task_id)
        tried = await super().increment_retry(task_list_id, task_id)
        if board and card and tried:
            board.cards[card.id] = card
            await asyncio.sleep(0)
            board.cards[card.id] = tried
        return tried


@mutant("boards", "test_leaving_a_terminal_state_is_an_illegal_transition")
class TerminalIsNotFinal(InMemoryBoards):
    """Any status may follow any other."""

    async def update_status(
        self, task_list_id: str, task_id: str, status: TaskStatus | str, note: str = ""
    ) -> Task | None:
        try:
            return await super().update_status(task_list_id, task_id, status, note)
        except IllegalTransitionError:
            board, card = self._card(task_list_id, task_id)
            assert board
            assert card
            board.cards[card.id] = replace(card, status=TaskStatus(status), note=note)
            return board.cards[card.id]


@mutant("boards", "test_a_failed_card_is_not_terminal")
class FailedIsTerminal(InMemoryBoards):
    """A failed card can go nowhere."""

    async def update_status(
        self, task_list_id: str, task_id: str, status: TaskStatus | str, note: str = ""
    ) -> Task | None:
        _, card = self._card(task_list_id, task_id)
        if card and card.status == "failed" and status != "failed":
            raise IllegalTransitionError("card", task_id, from_state="failed", to_state=str(status))
        return await super().update_status(task_list_id, task_id, status, note)


@mutant("boards", "test_an_empty_note_keeps_the_old_note")
class EmptyNoteErases(InMemoryBoards):
    """A move without a note takes the old note away."""

    async def update_status(
        self, task_list_id: str, task_id: str, status: TaskStatus | str, note: str = ""
    ) -> Task | None:
        before = self._card(task_list_id, task_id)[1]
        moved = await super().update_status(task_list_id, task_id, status, note)
        board, card = self._card(task_list_id, task_id)
        if before and board and card and moved and not card.status.terminal:
            moved = board.cards[card.id] = replace(card, note=note)
        return moved


@mutant(
    "boards",
    "test_force_retry_resets_count_and_note_and_plans_a_card_again_whatever_its_status",
)
class ForceRetryKeepsTheCount(InMemoryBoards):
    """A revived card has used up its retries already."""

    async def force_retry(self, task_list_id: str, task_id: str) -> Task | None:
        _, before = self._card(task_list_id, task_id)
        revived = await super().force_retry(task_list_id, task_id)
        board, _ = self._card(task_list_id, task_id)
        if before and board and revived:
            revived = board.cards[task_id] = replace(revived, retry_count=before.retry_count)
        return revived


@mutant("boards", "test_add_tasks_continues_after_the_highest_order")
class OrderIsTheNumberOfCards(InMemoryBoards):
    """After a deletion two cards get the same order."""

    async def add_tasks(self, task_list_id: str, titles: list[str]) -> list[Task]:
        board = self._board(task_list_id)
        start = len(board.cards) if board else 0
        added = await super().add_tasks(task_list_id, titles)
        moved = [replace(card, order=start + at) for at, card in enumerate(added)]
        if board:
            board.cards.update((card.id, card) for card in moved)
        return moved


@mutant("boards", "test_get_by_conversation_returns_the_board_of_the_agent_without_a_name")
class EarliestBoardWins(InMemoryBoards):
    """The main board is the first one, whoever owns it."""

    async def get_by_conversation(self, conversation_id: str) -> TaskList | None:
        boards = await self.get_boards_by_conversation(conversation_id)
        return boards[0] if boards else None
