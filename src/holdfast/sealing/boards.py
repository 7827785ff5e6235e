"""Encrypted to-do boards: titles, notes and labels are encrypted."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias

from holdfast.sealing.cipher import Place
from holdfast.sealing.seal import Opener, Seal, Sealer
from holdfast.spi.boards import BoardStorage, CardChange, CardMove
from holdfast.spi.id_page import IdPage
from holdfast.values.boards import ConversationSummary, Task, TaskList
from holdfast.values.owners import split_owned

Cards: TypeAlias = list[Task]
Lists: TypeAlias = list[TaskList]


class SealedBoards(BoardStorage):
    """Encrypts the titles, notes and labels that a ``BoardStorage`` stores.

    ::

        boards = SealedBoards(PostgresBoards(engine), sealing)
    """

    def __init__(self, inner: BoardStorage, seal: Seal) -> None:
        self._inner = inner
        self._seal = seal

    async def put(self, board: TaskList) -> datetime:
        """Store a board with its cards."""
        self._seal.check("agent_label", board.agent_label)
        sealer = await self._sealer(board.id)
        if sealer is not None:
            label = sealer.text(_place(board.id, "", "label"), board.agent_label)
            board = dataclasses.replace(board, agent_label=label)
        return await self._inner.put(dataclasses.replace(board, tasks=await self._cards(board)))

    async def get(self, board_id: str) -> TaskList | None:
        """Return a board."""
        found = await self._inner.get(board_id)
        return None if found is None else (await self._boards([found]))[0]

    async def list(self, conversation_id: str) -> Sequence[TaskList]:
        """Return the boards of a conversation."""
        return await self._boards(await self._inner.list(conversation_id))

    async def conversations(self, page: IdPage) -> Sequence[ConversationSummary]:
        """Return a page of the conversations that have boards."""
        return await self._inner.conversations(page)

    async def main(self, conversation_id: str) -> TaskList | None:
        """Return the main board of a conversation."""
        found = await self._inner.main(conversation_id)
        return None if found is None else (await self._boards([found]))[0]

    async def delete(self, board_id: str) -> bool:
        """Delete a board."""
        return await self._inner.delete(board_id)

    async def add_cards(self, board_id: str, cards: Sequence[Task]) -> tuple[int, datetime]:
        """Append cards."""
        sealed = await self._cards(TaskList(board_id, "", [*cards]))
        return await self._inner.add_cards(board_id, sealed)

    async def delete_card(self, board_id: str, card_id: str) -> bool:
        """Delete a card."""
        return await self._inner.delete_card(board_id, card_id)

    async def change_card(
        self,
        board_id: str,
        card_id: str,
        change: CardChange,
        *,
        expected_version: int | None,
        forced: bool,
    ) -> CardMove | None:
        """Change a card."""
        self._seal.check("note", change.note or "")
        self._seal.check("title", change.title or "")
        sealer = await self._sealer(board_id)
        if sealer is not None and change.note is not None:
            note = sealer.text(_place(board_id, card_id, "note"), change.note)
            change = change._replace(note=note)
        if sealer is not None and change.title is not None:
            title = sealer.text(_place(board_id, card_id, "title"), change.title)
            change = change._replace(title=title)
        moved = await self._inner.change_card(
            board_id, card_id, change, expected_version=expected_version, forced=forced
        )
        return await self._moved(board_id, moved)

    async def retry_card(self, board_id: str, card_id: str) -> CardMove | None:
        """Count one more try."""
        return await self._moved(board_id, await self._inner.retry_card(board_id, card_id))

    async def _sealer(self, board_id: str) -> Sealer | None:
        return await self._seal.sealer(split_owned(board_id)[0])

    async def _cards(self, board: TaskList) -> Cards:
        sealer = await self._sealer(board.id)
        for card in board.tasks:
            self._seal.check("title", card.title, card.note)
        if sealer is None:
            return board.tasks
        return [
            dataclasses.replace(
                card,
                title=sealer.text(_place(board.id, card.id, "title"), card.title),
                note=sealer.text(_place(board.id, card.id, "note"), card.note),
            )
            for card in board.tasks
        ]

    async def _boards(self, boards: Sequence[TaskList]) -> Lists:
        cards = (card for board in boards for card in board.tasks)
        texts = (text for card in cards for text in (card.title, card.note))
        opener = await self._seal.opener(*(board.agent_label for board in boards), *texts)
        if opener.is_plain:
            return [*boards]
        return [_opened(opener, board) for board in boards]

    async def _moved(self, board_id: str, moved: CardMove | None) -> CardMove | None:
        if moved is None:
            return None
        return moved._replace(card=await self._card(board_id, moved.card))

    async def _card(self, board_id: str, card: Task | None) -> Task | None:
        if card is None:
            return None
        opener = await self._seal.opener(card.title, card.note)
        return _opened_card(opener, board_id, card)


def _place(board_id: str, card_id: str, field: str) -> Place:
    return Place(f"board {field}", split_owned(board_id)[1], card_id)


def _opened(opener: Opener, board: TaskList) -> TaskList:
    owner, _ = split_owned(board.id)
    return dataclasses.replace(
        board,
        agent_label=opener.text(owner, _place(board.id, "", "label"), board.agent_label),
        tasks=[_opened_card(opener, board.id, card) for card in board.tasks],
    )


def _opened_card(opener: Opener, board_id: str, card: Task) -> Task:
    owner, _ = split_owned(board_id)
    return dataclasses.replace(
        card,
        title=opener.text(owner, _place(board_id, card.id, "title"), card.title),
        note=opener.text(owner, _place(board_id, card.id, "note"), card.note),
    )
