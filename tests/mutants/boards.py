from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from holdfast.contracts.boards import Boards
from holdfast.engines.inmemory.boards import InMemoryBoards
from holdfast.spi.boards import CardMove
from holdfast.spi.id_page import IdPage
from holdfast.values.boards import ConversationSummary, Task, TaskList, TaskStatus
from holdfast.values.errors import IllegalTransitionError
from tests.mutants.registry import mutant


@mutant("boards", "test_a_replaced_board_is_replaced_in_one_step")
class ReplacingDeletesFirst(InMemoryBoards):
    """The old board is gone for a moment before the new one is there."""

    async def put(self, board: TaskList) -> None:
        siblings = self._data.conversations.get(board.conversation_id, {})
        replaced = siblings.pop(board.agent_id, None)
        if replaced:
            del self._data.boards[replaced.facts.id]
            await asyncio.sleep(0)
        await super().put(board)


@mutant("boards", "test_concurrent_callers_can_never_exceed_max_retries")
class RetryBoundIsCheckedTooEarly(InMemoryBoards):
    """The count is read, and written a moment later."""

    async def retry_card(self, board_id: str, card_id: str) -> CardMove | None:
        before = self._card(board_id, card_id)
        tried = await super().retry_card(board_id, card_id)
        if before and tried and tried.card:
            self._put(board_id, before)
            await asyncio.sleep(0)
            self._put(board_id, tried.card)
        return tried


@mutant("boards", "test_leaving_a_terminal_state_is_an_illegal_transition")
class TerminalIsNotFinal(InMemoryBoards):
    """Any status may follow any other."""

    async def move_card(
        self, board_id: str, card_id: str, status: TaskStatus, note: str
    ) -> CardMove | None:
        moved = await super().move_card(board_id, card_id, status, note)
        card = self._card(board_id, card_id)
        if card and moved and moved.card is None:
            forced = replace(card, status=status, note=note)
            return CardMove(moved.was, self._put(board_id, forced))
        return moved


@mutant("boards", "test_a_failed_card_is_not_terminal")
class FailedIsTerminal(Boards):
    """A failed card can go nowhere."""

    async def update_status(
        self, task_list_id: str, task_id: str, status: TaskStatus | str, note: str = ""
    ) -> Task | None:
        board = await self.get_task_list(task_list_id)
        failed = board and any(one.id == task_id and one.status == "failed" for one in board.tasks)
        if failed and status != "failed":
            raise IllegalTransitionError("card", task_id, from_state="failed", to_state=str(status))
        return await super().update_status(task_list_id, task_id, status, note)


@mutant("boards", "test_an_empty_note_keeps_the_old_note")
class EmptyNoteErases(InMemoryBoards):
    """A move without a note takes the old note away."""

    async def move_card(
        self, board_id: str, card_id: str, status: TaskStatus, note: str
    ) -> CardMove | None:
        moved = await super().move_card(board_id, card_id, status, note)
        if moved and moved.card and not moved.card.status.terminal:
            return CardMove(moved.was, self._put(board_id, replace(moved.card, note=note)))
        return moved


@mutant(
    "boards",
    "test_force_retry_resets_count_and_note_and_plans_a_card_again_whatever_its_status",
)
class ForceRetryKeepsTheCount(InMemoryBoards):
    """A revived card has used up its retries already."""

    async def reset_card(self, board_id: str, card_id: str) -> Task | None:
        before = self._card(board_id, card_id)
        revived = await super().reset_card(board_id, card_id)
        if before and revived:
            revived = self._put(board_id, replace(revived, retry_count=before.retry_count))
        return revived


@mutant("boards", "test_add_tasks_continues_after_the_highest_order")
class OrderIsTheNumberOfCards(InMemoryBoards):
    """After a deletion two cards get the same order."""

    async def add_cards(self, board_id: str, cards: Sequence[Task]) -> int:
        board = self._data.boards.get(board_id)
        start = len(board.cards) if board else 0
        await super().add_cards(board_id, cards)
        for card in cards:
            self._put(board_id, replace(card, order=start + card.order))
        return start


@mutant("boards", "test_get_by_conversation_returns_the_board_of_the_agent_without_a_name")
class EarliestBoardWins(Boards):
    """The main board is the first one, whoever owns it."""

    async def get_by_conversation(self, conversation_id: str) -> TaskList | None:
        boards = await self.get_boards_by_conversation(conversation_id)
        return boards[0] if boards else None


@mutant("boards", "test_conversations_are_those_of_the_owner_who_asks_or_those_that_nobody_owns")
class ListsConversationsOfEveryOwner(InMemoryBoards):
    """The page of a tenant has the conversations of its owners too."""

    async def conversations(self, page: IdPage) -> Sequence[ConversationSummary]:
        return await super().conversations(replace(page, other=""))


@mutant("boards", "test_conversations_with_boards_are_listed_by_code_points_with_their_counts")
class CountsFailedCardsAsDone(InMemoryBoards):
    """A card that failed is not open."""

    async def conversations(self, page: IdPage) -> Sequence[ConversationSummary]:
        found = await super().conversations(page)
        return [replace(one, open_cards=max(one.open_cards - 1, 0)) for one in found]
