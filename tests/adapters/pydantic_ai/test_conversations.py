"""The conversation store: it does what the framework's own does, and survives."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.test import TestModel

from holdfast import State
from holdfast.adapters.pydantic_ai import HoldfastConversations
from holdfast.blocking import Portal
from holdfast.values.ids import new_ref

pytestmark = pytest.mark.asyncio(loop_scope="session")
OPERATIONS = [
    *("run", "run", "run", "load", "hold", "stale", "branch", "fork", "fork", "list", "delete"),
    *("limit", "entries"),
]


def _agent() -> Any:
    return Agent(TestModel(custom_output_text="low tide"))


async def _turn(store: ConversationStore, name: str, prompt: Any, scope: str | None = None) -> int:
    conversation = await store.load(name) or Conversation(conversation_id=name)
    result = await _agent().run(prompt, conversation=conversation)
    return len(await store.save(result, scope=scope))


class Script:
    """Random calls, the same for each store with the same seed; what they returned."""

    def __init__(self, store: ConversationStore, seed: int) -> None:
        self._store = store
        self._random = random.Random(seed)  # noqa: S311 - the same calls each time
        self._held: dict[str, Conversation] = {}
        self.log: list[Any] = []

    async def run(self, count: int) -> list[Any]:
        """Make the calls."""
        for at in range(count):
            name, operation = f"c{self._random.randint(0, 3)}", self._random.choice(OPERATIONS)
            scope = self._random.choice([None, "u1"])
            try:
                answer = await self._call(operation, name, scope, at)
            except (ConversationConflict, UserError) as error:
                answer = type(error).__name__
            self.log.append((operation, answer))
        return self.log

    async def _call(self, operation: str, name: str, scope: str | None, at: int) -> Any:
        return await getattr(self, f"_{operation}")(name, scope, at)

    async def _run(self, name: str, scope: str | None, at: int) -> int:
        return await _turn(self._store, name, f"q{at}", scope)

    async def _hold(self, name: str, _scope: str | None, _at: int) -> None:
        if (found := await self._store.load(name)) is not None:
            self._held[name] = found

    async def _stale(self, name: str, _scope: str | None, _at: int) -> int | None:
        if name not in self._held:
            return None
        return len(await self._store.save(await _agent().run("s", conversation=self._held[name])))

    async def _fork(self, name: str, _scope: str | None, at: int) -> int:
        # New names, so that no script makes a conversation that another fork made.
        await self._store.fork(name, at=1, new_conversation_id=f"f{at}")
        return await _turn(self._store, f"f{at}", f"q{at}")

    async def _list(self, _name: str, scope: str | None, _at: int) -> list[Any]:
        records = await self._store.list_conversations(scope=scope)
        return [(one.conversation_id, one.scope, len(one.branches)) for one in records]

    async def _delete(self, name: str, scope: str | None, _at: int) -> bool:
        await self._store.delete(name, scope=scope)
        return await self._store.load(name) is None

    async def _entries(self, name: str, _scope: str | None, _at: int) -> int:
        entries = await self._store.load_entries(name) or []
        for entry in entries:
            assert await self._store.read_entry(entry.id) == entry
        return len(entries)

    async def _load(self, name: str, scope: str | None, _at: int, limit: int | None = None) -> Any:
        found = await self._store.load(name, limit=limit, scope=scope)
        return found and [_shown(one) for one in found.messages]

    async def _limit(self, name: str, scope: str | None, at: int) -> Any:
        return await self._load(name, scope, at, limit=2)

    async def _branch(self, name: str, _scope: str | None, _at: int) -> Any:
        entries = await self._store.load_entries(name)
        found = await self._store.load(name)
        if not entries or found is None:
            return None
        chosen = entries[self._random.randrange(len(entries))].id
        made = await self._store.branch(name, from_entry=chosen, expected_revision=found.revision)
        return len(made.messages)


def _shown(message: Any) -> Any:
    return [(type(part).__name__, getattr(part, "content", None)) for part in message.parts]


async def test_random_calls_return_what_the_frameworks_own_store_returns(state: State) -> None:
    kinds = set()
    for seed in range(8):
        expected = await Script(InMemoryConversationStore(), seed).run(60)
        store = HoldfastConversations(state.for_owner(f"seed-{seed}"))
        assert await Script(store, seed).run(60) == expected
        kinds |= {(operation, type(answer)) for operation, answer in expected}
    # It compared something: messages, conflicts, branches.
    assert {("load", list), ("stale", str), ("stale", int), ("branch", int)} <= kinds


async def test_messages_come_back_as_they_were(state: State) -> None:
    store = HoldfastConversations(state)
    file = BinaryContent(data=bytes(range(256)), media_type="application/pdf")
    result = await _agent().run(
        ["look \x00 \u2028", file], conversation=Conversation(conversation_id="c\n1")
    )
    await store.save(result)
    found = await HoldfastConversations(state).load("c\n1")
    assert found is not None
    assert found.messages == result.conversation.messages
    assert found.usage == result.conversation.usage


async def test_of_two_writers_who_loaded_the_same_one_wins(state: State) -> None:
    one, two = HoldfastConversations(state), HoldfastConversations(state)
    await _turn(one, "c1", "hello")
    loaded = [await store.load("c1") for store in (one, two)]
    results = [await _agent().run("next", conversation=found) for found in loaded]
    saved = await asyncio.gather(
        *(store.save(result) for store, result in zip((one, two), results, strict=True)),
        return_exceptions=True,
    )
    assert sorted(type(answer).__name__ for answer in saved) == ["ConversationConflict", "list"]
    found = await one.load("c1")
    assert found is not None
    assert len(found.messages) == 4


async def test_20_forks_at_once_are_all_there(state: State) -> None:
    store = HoldfastConversations(state)
    await _turn(store, "c1", "hello")
    await asyncio.gather(*(store.fork("c1", new_conversation_id=f"f{at}") for at in range(20)))
    assert len(await store.list_conversations()) == 21


async def test_delete_removes_the_entries_that_nobody_else_uses(state: State) -> None:
    store = HoldfastConversations(state)
    await _turn(store, "c1", "hello")
    await store.fork("c1", at=1, new_conversation_id="f1")
    await _turn(store, "f1", "other")
    await store.delete("c1")
    rows = await state.items.search(("pydantic-ai", "entries"), limit=100)
    assert len(rows) == 3  # the shared one, and two of the fork
    found = await store.load("f1")
    assert found is not None
    assert len(found.messages) == 3
    await store.delete("f1")
    assert await state.items.search((), limit=100) == []


async def test_a_history_longer_than_a_page_is_read_whole(state: State) -> None:
    store = HoldfastConversations(state)
    [message] = (await _agent().run("hello")).new_messages()[:1]
    conversation = Conversation(conversation_id="c1", messages=[message] * 700)
    await store.save(conversation)
    conversation.messages = [*conversation.messages, *[message] * 650]
    await store.save(conversation)
    again = HoldfastConversations(state)
    found = await again.load("c1")
    assert found is not None
    assert len(found.messages) == 1_350
    some = await again.load("c1", limit=3)
    assert some is not None
    assert len(some.messages) == 3
    await again.delete("c1")
    assert await state.items.search((), limit=2_000) == []


async def test_tenants_and_owners_are_apart(state: State) -> None:
    ana = HoldfastConversations(state.for_owner("ana"))
    await _turn(ana, "c1", "hello")
    for other in (state, state.for_owner("ben"), state.for_tenant(new_ref()).for_owner("ana")):
        store = HoldfastConversations(other)
        assert await store.load("c1") is None
        assert await store.list_conversations() == []
        await store.delete("c1")
        await _turn(store, "c1", "mine")
    assert len(await ana.load_entries("c1") or []) == 2


async def test_any_thread_and_loop_may_use_it(database: str) -> None:
    with Portal.open(database, tenant=new_ref()) as portal:
        store = HoldfastConversations(portal)

        def of_a_thread(name: str) -> None:
            asyncio.run(_turn(store, name, "hello"))

        await asyncio.gather(*(asyncio.to_thread(of_a_thread, name) for name in ("a", "b", "c")))
        await _turn(store, "d", "hello")
        assert len(await store.list_conversations()) == 4
