"""Tools for to-do boards."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from holdfast.adapters.mcp.tool import LONG, SHORT, Caller, Tool
from holdfast.values.boards import TaskList
from holdfast.values.errors import InvalidInputError, NotFoundError

Status = Literal["planned", "in_progress", "blocked", "succeeded", "failed", "abandoned"]

CARDS = 1_000
"""How many cards a board may have."""

Title = Annotated[str, Meta(max_length=SHORT)]


class CreateBoard(msgspec.Struct):
    """The arguments of ``create_board``."""

    conversation: Annotated[str, Meta(min_length=1, description="The conversation it is for.")]
    titles: Annotated[
        list[Title], Meta(max_length=CARDS, description="The titles of its cards, in order.")
    ]


class ReadBoards(msgspec.Struct):
    """The arguments of ``read_boards``."""

    conversation: Annotated[str, Meta(min_length=1, description="The conversation.")]


class AddCards(msgspec.Struct):
    """The arguments of ``add_cards``."""

    board: Annotated[str, Meta(min_length=1, description="The id of the board.")]
    titles: Annotated[
        list[Title],
        Meta(min_length=1, max_length=CARDS, description="The titles of the new cards."),
    ]


class UpdateCard(msgspec.Struct):
    """The arguments of ``update_card``."""

    board: Annotated[str, Meta(min_length=1, description="The id of the board.")]
    card: Annotated[str, Meta(min_length=1, description="The id of the card.")]
    status: Status
    note: Annotated[str, Meta(max_length=LONG, description="Why, or what is missing.")] = ""


class Card(msgspec.Struct):
    """A card of a board."""

    id: str
    title: str
    status: str
    note: str


class Board(msgspec.Struct):
    """A to-do board."""

    id: str
    conversation: str
    cards: list[Card]


class BoardList(msgspec.Struct):
    """The boards of a conversation."""

    boards: list[Board]


async def _create_board(caller: Caller, asked: CreateBoard) -> Board:
    made = await caller.state.boards.create_task_list(
        asked.conversation, asked.titles, agent_id=caller.agent
    )
    return _board(made)


async def _read_boards(caller: Caller, asked: ReadBoards) -> BoardList:
    found = await caller.state.boards.get_boards_by_conversation(asked.conversation)
    return BoardList([_board(one) for one in found])


async def _add_cards(caller: Caller, asked: AddCards) -> Board:
    count = len((await _board_of(caller, asked.board)).cards) + len(asked.titles)
    if count > CARDS:
        raise InvalidInputError(
            "titles", f"a board may have {CARDS} cards, and it would have {count}: create another"
        )
    await caller.state.boards.add_tasks(asked.board, asked.titles)
    return await _board_of(caller, asked.board)


async def _update_card(caller: Caller, asked: UpdateCard) -> Board:
    changed = await caller.state.boards.update_status(
        asked.board, asked.card, asked.status, asked.note
    )
    if changed is None:
        raise NotFoundError("card", asked.card)
    return await _board_of(caller, asked.board)


async def _board_of(caller: Caller, board: str) -> Board:
    found = await caller.state.boards.get_task_list(board)
    if found is None:
        raise NotFoundError("board", board)
    return _board(found)


def _board(found: TaskList) -> Board:
    cards = [Card(one.id, one.title, str(one.status), one.note) for one in found.tasks]
    return Board(found.id, found.conversation_id, cards)


BOARD_TOOLS = (
    Tool(
        "create_board",
        "Create Board",
        "Create a to-do board for a conversation, with a card for each title.",
        CreateBoard,
        Board,
        _create_board,
    ),
    Tool(
        "read_boards",
        "Read Boards",
        "Return the to-do boards of a conversation with their cards.",
        ReadBoards,
        BoardList,
        _read_boards,
        reads=True,
    ),
    Tool("add_cards", "Add Cards", "Add cards to a to-do board.", AddCards, Board, _add_cards),
    Tool(
        "update_card",
        "Update Card",
        "Set the status of a card.",
        UpdateCard,
        Board,
        _update_card,
    ),
)
