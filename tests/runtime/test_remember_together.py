"""Tasks that begin together have their messages copied together, each into its own transcript."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from holdfast import App, ChatMessage, State, TaskContext
from holdfast.contracts.history import History
from holdfast.spi.log_entry import LogEntry
from holdfast.values.owners import MemoryScope

pytestmark = pytest.mark.asyncio(loop_scope="session")
COUNT = 24
OWNERS = ("", "ana", "bob")


def _heard() -> tuple[App, dict[str, list[str]]]:
    """An app whose handler notes, by task, what the transcript has when it begins."""
    app, heard = App("writer"), dict[str, list[str]]()

    @app.handler
    async def work(task: TaskContext) -> None:
        heard[task.id] = [one.text for one in await task.history.messages()]

    return app, heard


async def test_each_handler_finds_what_was_said_in_its_own_context(wired: State) -> None:
    app, heard = _heard()
    said: dict[str, tuple[str, str, str]] = {}
    for at in range(COUNT):
        # Owners use the same ids for different contexts.
        owner, session, text = OWNERS[at % 3], f"c{at // 3}", f"tide {at}"
        task = await wired.tasks.submit(
            "writer", ChatMessage.user(text), session_id=session, owner=owner or None
        )
        said[task.id] = (owner, session, text)
    await app.run_until_idle(wired, concurrency=COUNT)
    assert heard == {task_id: [text] for task_id, (_, _, text) in said.items()}
    for owner, session, text in said.values():
        history = wired.for_owner(owner).history
        found = await history.get_messages("writer", session_id=session)
        assert [one.text for one in found] == [text]


async def test_many_tasks_need_few_requests(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[int] = []
    append = History.append_checked

    async def counted(history: History, entries: Sequence[LogEntry]) -> None:
        requests.append(len(entries))
        await append(history, entries)

    monkeypatch.setattr(History, "append_checked", counted)
    app, heard = _heard()
    for at in range(COUNT):
        await state.tasks.submit("writer", ChatMessage.user(f"tide {at}"))
    await app.run_until_idle(state, concurrency=COUNT)
    assert len(heard) == COUNT
    assert sum(requests) >= COUNT
    # One for the first that begins, one for the others, and some as they end.
    assert len(requests) < COUNT / 2, requests


async def test_a_message_whose_id_is_in_use_does_not_keep_back_those_of_other_tasks(
    wired: State,
) -> None:
    app, heard = _heard()
    taken = ChatMessage.user("of somebody else")
    await wired.history.append("writer", taken, session_id="c0")
    for at in range(6):
        said = ChatMessage.user(f"tide {at}", id=taken.id if at == 0 else f"m{at}")
        await wired.tasks.submit("writer", said, session_id=f"c{at}")
    await app.run_until_idle(wired, concurrency=COUNT)
    assert sorted(map(tuple, heard.values())) == sorted(
        [("of somebody else", "tide 0"), *((f"tide {at}",) for at in range(1, 6))]
    )


async def test_an_owners_view_takes_no_entries_of_another_owner(state: State) -> None:
    bobs = state.for_owner("bob").history.checked(
        "writer", [ChatMessage.user("mine")], session_id="s1", run_id="r1"
    )
    for view in ("ana", ""):
        with pytest.raises(ValueError, match=r"entries\[0\]: is not in a session of this owner"):
            await state.for_owner(view).history.append_checked(bobs)
    assert await state.for_owner("bob").history.count_messages("writer", session_id="s1") == 0
    await state.for_owner("bob").history.append_checked(bobs)
    await state.history.append_checked(bobs)
    assert await state.for_owner("bob").history.count_messages("writer", session_id="s1") == 1


async def test_an_owners_view_takes_no_entries_of_another_owners_agent(state: State) -> None:
    def said(owner: str, memory: MemoryScope = "owner") -> list[LogEntry]:
        history = state.for_owner(owner, memory=memory).history
        return history.checked("writer", [ChatMessage.user("tide")], session_id="s1", run_id="r1")

    theirs = dataclasses.replace(said("ana")[0], agent=said("bob")[0].agent)
    nobodys = dataclasses.replace(said("")[0], agent=said("bob")[0].agent)
    refused = r"entries\[0\]: is not of an agent of this owner"
    for memory in ("owner", "shared"):
        with pytest.raises(ValueError, match=refused):
            await state.for_owner("ana", memory=memory).history.append_checked([theirs])
        with pytest.raises(ValueError, match=refused):
            await state.for_owner("", memory=memory).history.append_checked([nobodys])
        await state.for_owner("ana", memory=memory).history.append_checked(said("ana", memory))
        await state.for_owner("", memory=memory).history.append_checked(said("", memory))
    assert not await state.for_owner("bob").episodes.recall("writer", "tide")
