from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.contracts.boards import Boards
from holdfast.engines.inmemory.boards import InMemoryBoards
from holdfast.spi.boards import CardChange, CardMove
from holdfast.spi.id_page import IdPage
from holdfast.values.boards import ConversationSummary, Task, TaskList, TaskStatus
from holdfast.values.errors import IllegalTransitionError
from tests.mutants.registry import mutant


@mutant("boards", "test_a_replaced_board_is_replaced_in_one_step")
class ReplacingDeletesFirst(InMemoryBoards):
    """The old board is gone for a moment before the new one is there."""

    async def put(self, board: TaskList) -> datetime:
        siblings = self._data.conversations.get(board.conversation_id, {})
        replaced = siblings.pop(board.agent_id, None)
        if replaced:
            del self._data.boards[replaced.facts.id]
            await asyncio.sleep(0)
        return await super().put(board)


@mutant("boards", "test_concurrent_callers_can_never_exceed_max_retries")
class RetryBoundIsCheckedTooEarly(InMemoryBoards):
    """The count is read, and written a moment later."""

    async def retry_card(self, board_id: str, card_id: str) -> CardMove | None:
        before = self._card(board_id, card_id)
        tried = await super().retry_card(board_id, card_id)
        if before and tried and tried.card:
            self._put(board_id, before, before)
            await asyncio.sleep(0)
            self._put(board_id, tried.card, tried.card)
        return tried


@mutant("boards", "test_leaving_a_terminal_state_is_an_illegal_transition")
class TerminalIsNotFinal(InMemoryBoards):
    """Any status may follow any other."""

    async def change_card(
        self, board_id: str, card_id: str, change: CardChange, **how: Any
    ) -> CardMove | None:
        how["forced"] = True
        return await super().change_card(board_id, card_id, change, **how)


@mutant("boards", "test_a_failed_card_is_not_terminal")
class FailedIsTerminal(Boards):
    """A failed card can go nowhere."""

    async def update_status(
        self,
        task_list_id: str,
        task_id: str,
        status: TaskStatus | str,
        note: str = "",
        *,
        expected_version: int | None = None,
    ) -> Task | None:
        board = await self.get_task_list(task_list_id)
        failed = board and any(one.id == task_id and one.status == "failed" for one in board.tasks)
        if failed and status != "failed":
            raise IllegalTransitionError("card", task_id, from_state="failed", to_state=str(status))
        return await super().update_status(
            task_list_id, task_id, status, note, expected_version=expected_version
        )


@mutant("boards", "test_an_empty_note_keeps_the_old_note")
class EmptyNoteErases(InMemoryBoards):
    """A move without a note takes the old note away."""

    async def change_card(
        self, board_id: str, card_id: str, change: CardChange, **how: Any
    ) -> CardMove | None:
        if change.status and not change.status.terminal:
            change = change._replace(note=change.note or "")
        return await super().change_card(board_id, card_id, change, **how)


@mutant(
    "boards",
    "test_force_retry_resets_count_and_note_and_plans_a_card_again_whatever_its_status",
)
class ForceRetryKeepsTheCount(InMemoryBoards):
    """A revived card has used up its retries already."""

    async def change_card(
        self, board_id: str, card_id: str, change: CardChange, **how: Any
    ) -> CardMove | None:
        change = change._replace(retry_count=None)
        return await super().change_card(board_id, card_id, change, **how)


@mutant("boards", "test_of_many_changes_that_expect_the_same_version_one_wins")
class CardVersionIsCheckedTooEarly(InMemoryBoards):
    """The version is compared, and the card is written a moment later."""

    async def change_card(
        self, board_id: str, card_id: str, change: CardChange, **how: Any
    ) -> CardMove | None:
        card = self._card(board_id, card_id)
        if card and how["expected_version"] == card.version:
            await asyncio.sleep(0)
            how["expected_version"] = None
        return await super().change_card(board_id, card_id, change, **how)


@mutant("boards", "test_each_change_of_a_card_adds_one_to_its_version_and_sets_its_time")
class RenamesWithoutANewVersion(InMemoryBoards):
    """A new title is no change."""

    async def change_card(
        self, board_id: str, card_id: str, change: CardChange, **how: Any
    ) -> CardMove | None:
        moved = await super().change_card(board_id, card_id, change, **how)
        if moved and moved.card and change.title is not None:
            kept = replace(moved.card, version=moved.version)
            self._data.boards[board_id].cards[card_id] = kept
            return moved._replace(card=kept)
        return moved


@mutant("boards", "test_add_tasks_continues_after_the_highest_order")
class OrderIsTheNumberOfCards(InMemoryBoards):
    """After a deletion two cards get the same order."""

    async def add_cards(self, board_id: str, cards: Sequence[Task]) -> tuple[int, datetime]:
        board = self._data.boards.get(board_id)
        start = len(board.cards) if board else 0
        _, at = await super().add_cards(board_id, cards)
        for card in cards:
            self._put(board_id, card, replace(card, order=start + card.order))
        return start, at


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
