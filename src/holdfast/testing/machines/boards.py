"""Random work on few boards with few cards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from holdfast.testing.machines.machine import EngineMachine
from holdfast.values.boards import Task, TaskList, TaskStatus

CONVERSATIONS = st.sampled_from(["c1", "c2"])
AGENTS = st.sampled_from(["", "a"])
TITLES = st.lists(st.sampled_from(["x", " y ", "z", "\n"]), max_size=2)
PICK = st.integers(0, 3)
VERSION = st.none() | st.integers(1, 4)


def _seen(value: Any) -> Any:
    """A board or a card without the ids, which each side mints for itself."""
    match value:
        case TaskList():
            return replace(value, id="", tasks=_seen(value.tasks))
        case Task():
            return replace(value, id=""), value.version
        case list():
            return [_seen(one) for one in value]
    return value


class BoardsMachine(EngineMachine):
    """Boards that are made, replaced and worked off; cards that fail and come back."""

    contract = "boards"

    def __init__(self) -> None:
        super().__init__()
        self.boards: list[tuple[str, str]] = [("nothing", "nothing")]
        self.cards: list[tuple[tuple[str, str], tuple[str, str]]] = [(self.boards[0],) * 2]

    def _keep(self, board: tuple[str, str], left: list[Task], right: list[Task]) -> None:
        self.boards.append(board)
        self.cards += [(board, (one.id, other.id)) for one, other in zip(left, right, strict=True)]

    def _on_card(self, pick: int, call: Callable[[Any, str, str], Any]) -> None:
        """One of the last few cards, old and gone ones included."""
        board, card = self.cards[-1 - pick % len(self.cards)]
        self.each(
            lambda store: call(store, board[0], card[0]),
            lambda store: call(store, board[1], card[1]),
            _seen,
        )

    @initialize(retries=st.integers(0, 2))
    def begin(self, retries: int) -> None:
        """Have a board with cards to work off, whatever comes."""
        self.create("c1", ["x", "y", "z"], "", retries)

    @rule(conversation=CONVERSATIONS, titles=TITLES, agent=AGENTS, retries=st.integers(0, 2))
    def create(self, conversation: str, titles: list[str], agent: str, retries: int) -> None:
        """Make or replace a board."""

        async def call(store: Any) -> Any:
            return await store.create_task_list(
                conversation, titles, agent_id=agent, max_retries=retries
            )

        left, right = self.each(call, call, _seen)
        self._keep((left.id, right.id), left.tasks, right.tasks)

    @invariant()
    def same_boards(self) -> None:
        """Both hold the same after every step."""
        self.both(lambda store: store.get_boards_by_conversation("c1"), _seen)
        self.both(lambda store: store.get_boards_by_conversation("c2"), _seen)

    @rule(limit=st.integers(0, 3), after=st.none() | CONVERSATIONS)
    def list_conversations(self, limit: int, after: str | None) -> None:
        """Count the cards of each."""
        self.both(lambda store: store.list_conversations(limit=limit, after=after))

    @rule(conversation=CONVERSATIONS)
    def read_conversation(self, conversation: str) -> None:
        """Look at the main board."""
        self.both(lambda store: store.get_by_conversation(conversation), _seen)

    @rule(pick=PICK)
    def read_board(self, pick: int) -> None:
        """Compare one board."""
        left, right = self.boards[-1 - pick % len(self.boards)]
        self.each(
            lambda store: store.get_task_list(left),
            lambda store: store.get_task_list(right),
            _seen,
        )

    @rule(pick=PICK, titles=TITLES)
    def add_tasks(self, pick: int, titles: list[str]) -> None:
        """Append."""
        left, right = board = self.boards[-1 - pick % len(self.boards)]
        mine, theirs = self.each(
            lambda store: store.add_tasks(left, titles),
            lambda store: store.add_tasks(right, titles),
            _seen,
        )
        if isinstance(mine, list):
            self._keep(board, mine, theirs)

    @rule(
        pick=PICK,
        status=st.sampled_from(TaskStatus),
        note=st.sampled_from(["", "why", "x"]),
        expected=VERSION,
    )
    def update_status(self, pick: int, status: TaskStatus, note: str, expected: int | None) -> None:
        """Move."""
        self._on_card(
            pick,
            lambda store, *ids: store.update_status(*ids, status, note, expected_version=expected),
        )

    @rule(pick=PICK)
    def increment_retry(self, pick: int) -> None:
        """Try again."""
        self._on_card(pick, lambda store, *ids: store.increment_retry(*ids))

    @rule(pick=PICK)
    def force_retry(self, pick: int) -> None:
        """Revive."""
        self._on_card(pick, lambda store, *ids: store.force_retry(*ids))

    @rule(pick=PICK)
    def delete_board(self, pick: int) -> None:
        """Remove a board."""
        left, right = self.boards[-1 - pick % len(self.boards)]
        self.each(
            lambda store: store.delete_task_list(left),
            lambda store: store.delete_task_list(right),
        )

    @rule(pick=PICK)
    def delete_task(self, pick: int) -> None:
        """Remove."""
        self._on_card(pick, lambda store, *ids: store.delete_task(*ids))

    @rule(pick=PICK, title=st.sampled_from(["new", " z"]), expected=VERSION)
    def update_task_title(self, pick: int, title: str, expected: int | None) -> None:
        """Rename."""
        self._on_card(
            pick,
            lambda store, *ids: store.update_task_title(*ids, title, expected_version=expected),
        )

    @rule(pick=PICK, note=st.sampled_from(["", "why"]), expected=VERSION)
    def update_task_note(self, pick: int, note: str, expected: int | None) -> None:
        """Write another note."""
        self._on_card(
            pick, lambda store, *ids: store.update_task_note(*ids, note, expected_version=expected)
        )
