"""Every store of its task's owner in the hands of a handler, and what an app's handlers share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import (
    ALL_AGENTS,
    AgentId,
    App,
    ChatMessage,
    Document,
    Entity,
    Event,
    State,
    TaskContext,
)
from holdfast.checkpoints import Checkpoint, TypedBytes
from holdfast.errors import ConfigError, InvalidInputError
from holdfast.items import ItemKey, ItemPut
from holdfast.runtime.worker import Worker
from holdfast.values.ids import new_ref

pytestmark = pytest.mark.asyncio(loop_scope="session")
TREASURE = "the gold is under the oak"
EVER = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))


@pytest.fixture
def state(wired: State) -> State:
    """A state of each wiring."""
    return wired


def _app() -> App:
    """An agent that hides a secret in every store, and one message later looks for it."""
    app = App("keeper")

    @app.handler
    async def keep(task: TaskContext) -> None:
        stores = task.stores
        if task.message.text == "hide":
            ref = await stores.blobs.store(TREASURE)
            await stores.short_term.set_state("s1", {"note": TREASURE, "ref": ref})
            await stores.history.append(task.agent, ChatMessage.user(TREASURE), session_id="s1")
            event = Event(task.agent, "s1", "decision", {"where": TREASURE}, id=task.id)
            await stores.episodes.append([event])
            await stores.long_term.save(task.agent, TREASURE)
            document = Document.from_text(TREASURE, id="d1", embedding=[1.0, 0.0])
            await stores.vectors.upsert([document])
            await stores.graph.add_entities([Entity("Place", {"holds": TREASURE}, "oak")])
            await stores.boards.create_task_list("c1", [TREASURE])
            value = TypedBytes("text", TREASURE.encode())
            one = Checkpoint("t1", "", "c1", None, value, value)
            await stores.checkpoints.put(one, new_values={})
            await stores.items.put_many([ItemPut(("trees",), "oak", {"holds": TREASURE})])
            await stores.channel("alerts").publish({"where": TREASURE}, id=task.id)
            await stores.memory("other", session_id="s1").record("note", {"where": TREASURE})
            return
        everywhere: dict[str, Any] = {
            "short_term": await stores.short_term.get_state("s1"),
            "history": await stores.history.get_messages(task.agent, session_id="s1"),
            "episodes": await stores.episodes.recent(task.agent, types=["decision"]),
            "long_term": await stores.long_term.search(task.agent, "gold"),
            "vectors": await stores.vectors.search([1.0, 0.0]),
            "graph": await stores.graph.find_entities(["oak"]),
            "boards": await stores.boards.get_boards_by_conversation("c1"),
            "checkpoints": await stores.checkpoints.get("t1"),
            "items": (await stores.items.get_many([ItemKey(("trees",), "oak")]))[0],
            "channel": await stores.channel("alerts").read(),
            "memory": await stores.memory("other").recall("gold"),
        }
        if ref := everywhere["short_term"].get("ref"):
            everywhere["blobs"] = await stores.blobs.resolve(ref)
        found = sorted(name for name, it in everywhere.items() if TREASURE in repr(it))
        await task.artifact("found", {"found": found})

    return app


async def _ask(app: App, state: State, owner: str, word: str) -> set[str]:
    task = await app.submit(state, word, owner=owner)
    await app.run_until_idle(state)
    done = await state.tasks.get(task.id, owner=owner)
    assert done is not None
    assert done.state == "completed", done.note
    parts: list[Any] = [part for one in done.artifacts for part in one.parts]
    return set(parts[0].data["found"]) if parts else set()


async def test_a_handler_reaches_every_store_of_its_owner_and_of_nobody_else(state: State) -> None:
    app = _app()
    await _ask(app, state, "ana", "hide")
    assert await _ask(app, state, "ana", "look") == {
        *("short_term", "history", "episodes", "long_term", "vectors", "graph", "boards"),
        *("checkpoints", "items", "channel", "memory", "blobs"),
    }
    for other in ("bob", ""):
        assert await _ask(app, state, other, "look") == set()


async def test_all_agents_of_a_handler_are_those_of_its_owner(state: State) -> None:
    app = App("keeper", remember=False)

    @app.handler
    async def keep(task: TaskContext) -> None:
        log = task.stores.episodes
        if task.message.text == "hide":
            for agent in ("keeper", "other"):
                payload = {"where": TREASURE, "whose": task.owner or "nobody"}
                await log.append([Event(AgentId.parse(agent), "s1", "note", payload)])
            return
        found = [
            *await log.recent(ALL_AGENTS, where={"where": TREASURE}),
            *await log.between(ALL_AGENTS, *EVER, where={"where": TREASURE}),
            *await log.any_owner().recent(ALL_AGENTS, session_id="s1"),
            *(hit.event for hit in await log.recall(ALL_AGENTS, "gold")),
        ]
        whose = sorted({one.payload["whose"] for one in found})
        await task.artifact("found", {"found": [*whose, str(len(found))]})

    other = state.for_tenant(f"other-{new_ref()}")
    for one, owner in ((state, "ana"), (state, "bob"), (state, ""), (other, "ana")):
        await _ask(app, one, owner, "hide")
        if one is other:
            await _ask(app, one, "ana", "hide")
    assert await _ask(app, state, "ana", "look") == {"ana", "8"}
    assert await _ask(app, state, "bob", "look") == {"bob", "8"}
    assert await _ask(app, state, "", "look") == {"nobody", "8"}
    assert await _ask(app, other, "ana", "look") == {"ana", "16"}
    assert await _ask(app, other, "bob", "look") == {"0"}
    # An operator may ask for the whole tenant, and for no other.
    assert len(await state.episodes.recent(ALL_AGENTS, where={"where": TREASURE})) == 2
    whole = state.episodes.any_owner()
    assert len(await whole.recent(ALL_AGENTS, where={"where": TREASURE})) == 6
    nobodys = state.for_owner("").episodes.any_owner()
    assert len(await nobodys.recent(ALL_AGENTS, where={"where": TREASURE})) == 2


async def test_the_stores_of_a_handler_open_close_and_reach_nothing_else(state: State) -> None:
    app, seen = App("keeper"), list[Any]()

    @app.handler
    async def keep(task: TaskContext) -> None:
        seen.extend(name for name in dir(task.stores) if not name.startswith("_"))

    await app.submit(state, "look")
    await app.run_until_idle(state)
    assert sorted(seen) == [
        *("blobs", "boards", "channel", "checkpoints", "episodes", "graph", "history"),
        *("items", "long_term", "memory", "short_term", "vectors"),
    ]


async def test_resources_live_from_before_the_first_task_until_after_the_last(
    state: State,
) -> None:
    log = list[str]()

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[dict[str, int]]:
        log.append("open")
        yield {"port": 7}
        log.append("close")

    app = App("keeper", lifespan=lifespan)

    @app.handler
    async def keep(task: TaskContext) -> None:
        log.append(f"task {task.resources['port']}")
        await asyncio.sleep(0)

    for _ in range(2):
        await app.submit(state, "go")
    await app.run_until_idle(state)
    assert log == ["open", "task 7", "task 7", "close"]

    await app.submit(state, "go")
    worker = Worker(app, state, tenants=[state.tenant], watch=lambda _ending: worker.stop())
    await worker.run()
    assert log == ["open", "task 7", "task 7", "close", "open", "task 7", "close"]


async def test_without_a_lifespan_there_are_no_resources(state: State) -> None:
    app, seen = App("keeper"), list[Any]()

    @app.handler
    async def keep(task: TaskContext) -> None:
        seen.append(task.resources)

    await app.submit(state, "go")
    await app.run_until_idle(state)
    assert seen == [None]


async def test_a_worker_whose_resources_cannot_be_made_claims_nothing(state: State) -> None:
    async def fail() -> None:
        raise OSError("no such host")

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        await fail()
        yield

    app = App("keeper", lifespan=lifespan)

    @app.handler
    async def keep(task: TaskContext) -> None:
        raise AssertionError(task.id)

    task = await app.submit(state, "go")
    with pytest.raises(OSError, match="no such host"):
        await app.run_until_idle(state)
    found = await state.tasks.get(task.id)
    assert found is not None
    assert (found.state, found.attempts) == ("submitted", 0)


async def test_a_lifespan_that_is_no_context_manager_is_refused() -> None:
    async def lifespan() -> AsyncIterator[None]:
        yield

    wrong: Any = lifespan
    with pytest.raises(ConfigError, match="asynccontextmanager before it"):
        App("keeper", lifespan=wrong).resources()
    wrong = "app:lifespan"
    with pytest.raises(InvalidInputError, match="lifespan: must be a function"):
        App("keeper", lifespan=wrong)
