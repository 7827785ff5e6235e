"""Where hostile input can enter a ``TaskStore``."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.contracts.boards import Boards, TaskStore
from holdfast.testing.hostile import KEPT, REFUSED, Hostile, Verdict
from holdfast.testing.probes.probe import NO_ECHO, Probe
from holdfast.values.errors import NotFoundError

CONTRACT = "boards"

Use = Callable[[Any, Any], Awaitable[Any]]


async def _conversation(store: TaskStore, value: Any) -> Any:
    await store.create_task_list(value, ["a"])
    board = await store.get_by_conversation(value)
    return board and board.conversation_id


async def _agent(store: TaskStore, value: Any) -> Any:
    made = await store.create_task_list("c1", ["a"], agent_id=value)
    board = await store.get_task_list(made.id)
    return board and board.agent_id


async def _label(store: TaskStore, value: Any) -> Any:
    made = await store.create_task_list("c1", ["a"], agent_label=value)
    board = await store.get_task_list(made.id)
    return board and board.agent_label


async def _parent(store: TaskStore, value: Any) -> Any:
    made = await store.create_task_list("c1", ["a"], parent_agent_id=value)
    board = await store.get_task_list(made.id)
    return board and board.parent_agent_id


async def _titles(store: TaskStore, value: Any) -> Any:
    made = await store.create_task_list("c1", ["a", value])
    board = await store.get_task_list(made.id)
    return board and [card.title for card in board.tasks]


async def _one_board(store: TaskStore) -> None:
    await store.create_task_list("c1", ["a"])


async def _card(store: TaskStore) -> tuple[str, str]:
    board = await store.get_by_conversation("c1")
    assert board is not None
    return board.id, board.tasks[0].id


async def _added(store: TaskStore, value: Any) -> Any:
    board, _ = await _card(store)
    return [card.title for card in await store.add_tasks(board, [value])]


async def _note(store: TaskStore, value: Any) -> Any:
    moved = await store.update_status(*await _card(store), "blocked", value)
    return moved and (moved.note if value else "")


async def _new_note(store: Boards, value: Any) -> Any:
    noted = await store.update_task_note(*await _card(store), value)
    return noted and noted.note


async def _status(store: TaskStore, value: Any) -> Any:
    moved = await store.update_status(*await _card(store), value)
    return moved and moved.status


async def _title(store: TaskStore, value: Any) -> Any:
    renamed = await store.update_task_title(*await _card(store), value)
    return renamed and renamed.title


def _unknown(method: str, arguments: Callable[[Any], tuple[Any, ...]]) -> Use:
    """A call with an id that nothing has: it is refused, or finds nothing."""

    async def use(store: TaskStore, value: Any) -> Any:
        with contextlib.suppress(NotFoundError):
            assert not await getattr(store, method)(*arguments(value))
        return NO_ECHO

    return use


async def _after(store: Boards, value: Any) -> Any:
    assert await store.list_conversations(after=value) == []
    return NO_ECHO


def _refuse_blank(hostile: Hostile) -> Verdict | None:
    return REFUSED if isinstance(hostile.value, str) and not hostile.value.strip() else None


def _refuse_all(_hostile: Hostile) -> Verdict | None:
    return REFUSED


def _keep_none(hostile: Hostile) -> Verdict | None:
    return KEPT if hostile.value is None else None


def _stripped(value: str) -> list[str]:
    return [value.strip()] if value.strip() else []


IDS: tuple[tuple[str, str, Callable[[Any], tuple[Any, ...]]], ...] = (
    ("get_task_list", "task_list_id", lambda value: (value,)),
    ("get_by_conversation", "conversation_id", lambda value: (value,)),
    ("get_boards_by_conversation", "conversation_id", lambda value: (value,)),
    ("add_tasks", "task_list_id", lambda value: (value, ["a"])),
    ("update_status", "task_list_id", lambda value: (value, "t", "failed")),
    ("update_status", "task_id", lambda value: ("b", value, "failed")),
    ("delete_task_list", "task_list_id", lambda value: (value,)),
    ("delete_task", "task_list_id", lambda value: (value, "t")),
    ("delete_task", "task_id", lambda value: ("b", value)),
    ("increment_retry", "task_list_id", lambda value: (value, "t")),
    ("increment_retry", "task_id", lambda value: ("b", value)),
    ("force_retry", "task_list_id", lambda value: (value, "t")),
    ("force_retry", "task_id", lambda value: ("b", value)),
    ("update_task_title", "task_list_id", lambda value: (value, "t", "new")),
    ("update_task_title", "task_id", lambda value: ("b", value, "new")),
    ("update_task_note", "task_list_id", lambda value: (value, "t", "new")),
    ("update_task_note", "task_id", lambda value: ("b", value, "new")),
)

PROBES = (
    Probe("create_task_list.conversation_id", "id", _conversation),
    Probe("create_task_list.agent_id", "optional_id", _agent),
    Probe("create_task_list.agent_label", "text", _label),
    Probe("create_task_list.parent_agent_id", "optional_id", _parent, judge=_keep_none),
    Probe(
        "create_task_list.task_titles",
        "text",
        _titles,
        expect=lambda value: ["a", *_stripped(value)],
    ),
    Probe("list_conversations.after", "id", _after, judge=_keep_none),
    Probe("add_tasks.titles", "text", _added, _one_board, _stripped),
    Probe("update_status.note", "text", _note, _one_board),
    Probe("update_status.status", "text", _status, _one_board, judge=_refuse_all),
    Probe("update_task_note.note", "text", _new_note, _one_board),
    Probe("update_task_title.title", "text", _title, _one_board, str.strip, _refuse_blank),
    *(
        Probe(f"{method}.{field}", "id", _unknown(method, arguments))
        for method, field, arguments in IDS
    ),
)
