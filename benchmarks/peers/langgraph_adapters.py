"""langgraph with our adapters: its checkpointer and its store on Holdfast, beside its own."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.peers.langgraph import LanggraphStore
from benchmarks.peers.match import Calls, Growth, Line, Peer, Stage
from benchmarks.peers.servers import holdfast_on

THREADS = 8
LENGTHS = {10: 100, 1000: 2}
"""How many steps a thread has, and over how many such threads the calls go round."""
PUT, GET = "put a checkpoint (adapter)", "get the newest checkpoint (adapter)"
USERS, MEMORIES, DIMENSION = 8, 100, 384
GET_ITEM, PUT_ITEM, SEARCH = (
    "get an item (adapter)",
    "put an item with its vector (adapter)",
    "search items by meaning (adapter)",
)


def _step(length: int) -> Line:
    return Line(
        f"a step of a thread of {length:,} (adapter)",
        "HoldfastSaver.aput_writes + aput",
        "AsyncPostgresSaver.aput_writes + aput",
        2.0,
        f"what a node wrote and the checkpoint after it, to a thread of {length:,} steps",
    )


class SaverAdapter(Peer):
    """``HoldfastSaver`` beside ``AsyncPostgresSaver``, called as the loop of a graph calls them.

    The same checkpoints: twenty messages, the step and the next node, each with a new version. Both
    serialise with LangGraph's own serialiser; ours refuses rows that name a class of others.
    """

    name = "langgraph AsyncPostgresSaver, by adapter"
    packages = LanggraphStore.packages
    install = LanggraphStore.install
    lines = (
        Line(
            PUT,
            "HoldfastSaver.aput",
            "AsyncPostgresSaver.aput",
            2.0,
            "20 messages and a position to one of 8 threads, durable on return; theirs on a "
            "connection of its own, as its from_conn_string makes it",
        ),
        Line(
            GET,
            "HoldfastSaver.aget_tuple",
            "AsyncPostgresSaver.aget_tuple",
            3.0,
            "the newest checkpoint of a thread with its values and writes, decoded",
        ),
        *map(_step, LENGTHS),
    )
    growth = Growth(
        "a step of a thread",
        lines[-2],
        lines[-1],
        1.1,
        min(LENGTHS),
        max(LENGTHS),
        block=10,
        blocks=60,
    )

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """The adapter on Postgres."""
        from holdfast.adapters.langgraph import HoldfastSaver  # noqa: PLC0415 - optional

        async with holdfast_on(stage.url, "saver adapter") as state:
            yield await self._calls(HoldfastSaver(state), stage)

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        """The same on theirs."""
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver  # noqa: PLC0415 - optional

        async with AsyncPostgresSaver.from_conn_string(stage.url) as saver:
            await saver.setup()
            yield await self._calls(saver, stage)

    async def _calls(self, saver: Any, stage: Stage) -> Calls:
        put, get, *steps = self.lines
        threads = [_Thread(f"t{at}", stage) for at in range(THREADS)]
        for thread in threads:
            await _advance(saver, thread.next())
        made = _in_turn(threads, put.calls_of(quick=stage.quick))
        newest = itertools.cycle([thread.newest() for thread in threads])
        calls = {
            put.operation: lambda _n: saver.aput(*next(made)),
            get.operation: lambda _n: saver.aget_tuple(next(newest)),
        }
        for line, (length, usual) in zip(steps, LENGTHS.items(), strict=True):
            number = max(1, usual // 4) if stage.quick else usual
            filled = [_Thread(f"{length}.{at}", stage) for at in range(number)]
            for thread in filled:
                for _ in range(length):
                    await _advance(saver, thread.next())
            count = line.calls_of(quick=stage.quick) + self.growth.calls_of(quick=stage.quick)
            calls[line.operation] = _stepping(saver, _in_turn(filled, count))
        return calls


class _Thread:
    """A thread that makes the checkpoints of its steps."""

    def __init__(self, name: str, stage: Stage) -> None:
        self.name = name
        self._payload = stage.workload.checkpoint(0)
        self._step = 0
        self._parent: dict[str, str] = {}

    def newest(self) -> Any:
        """Return the config that reads the thread's newest checkpoint."""
        return {"configurable": {"thread_id": self.name, "checkpoint_ns": ""}}

    def next(self) -> tuple[Any, Any, Any, Any]:
        """Return the arguments of the next ``aput``."""
        from langgraph.checkpoint.base import empty_checkpoint  # noqa: PLC0415 - optional

        self._step += 1
        versions = dict.fromkeys(self._payload, f"{self._step:032}.{0:016}")
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = self._payload | {"step": self._step}
        checkpoint["channel_versions"] = versions
        config = self.newest()
        config["configurable"] |= self._parent
        self._parent = {"checkpoint_id": checkpoint["id"]}
        metadata = {"source": "loop", "step": self._step, "parents": {}}
        return config, checkpoint, metadata, versions


def _in_turn(threads: list[_Thread], count: int) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Return so many steps, made beforehand, of one thread after another."""
    return iter([threads[at % len(threads)].next() for at in range(count)])


def _stepping(saver: Any, made: Iterator[tuple[Any, Any, Any, Any]]) -> Any:
    return lambda _n: _advance(saver, next(made))


async def _advance(saver: Any, step: tuple[Any, Any, Any, Any]) -> None:
    """Store the writes of a node to the checkpoint before, then the checkpoint after it."""
    config, checkpoint, *_ = step
    if "checkpoint_id" in config["configurable"]:
        message = checkpoint["channel_values"]["messages"][-1]
        await saver.aput_writes(config, [("messages", message)], "task", "~__pregel_pull, model")
    await saver.aput(*step)


class StoreAdapter(Peer):
    """``HoldfastStore`` beside ``AsyncPostgresStore`` with its index of pgvector.

    The same items and the same vectors; the embedder is a table, so that it costs nothing.
    """

    name = "langgraph AsyncPostgresStore, by adapter"
    packages = LanggraphStore.packages
    install = LanggraphStore.install
    lines = (
        Line(
            GET_ITEM,
            "HoldfastStore.aget",
            "AsyncPostgresStore.aget",
            3.0,
            f"one of {MEMORIES} memories of one of {USERS} users, by its key",
        ),
        Line(
            PUT_ITEM,
            "HoldfastStore.aput",
            "AsyncPostgresStore.aput",
            2.0,
            f"the same in place of the one before, with its vector of {DIMENSION}, durable on "
            "return; theirs in two statements and a global index, ours in one",
        ),
        Line(
            SEARCH,
            "HoldfastStore.asearch",
            "AsyncPostgresStore.asearch",
            3.0,
            f"the nearest 10 of the {MEMORIES} of one of {USERS} users; ours is exact, theirs goes "
            "through a global index and may return fewer",
        ),
    )

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """The adapter on Postgres."""
        from holdfast.adapters.langgraph import HoldfastStore  # noqa: PLC0415 - optional

        memories = _Memories(stage)
        async with holdfast_on(stage.url, "store adapter") as state:
            yield await _store_calls(HoldfastStore(state, index=memories.index()), memories)

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        """The same on theirs."""
        from langgraph.store.postgres import AsyncPostgresStore  # noqa: PLC0415 - optional

        memories = _Memories(stage)
        async with AsyncPostgresStore.from_conn_string(stage.url, index=memories.index()) as store:
            await store.setup()
            yield await _store_calls(store, memories)


class _Memories:
    """What the users' memories say, and the vectors of those texts."""

    def __init__(self, stage: Stage) -> None:
        rng = random.Random(7)  # noqa: S311 - the same vectors each time
        self.texts = [f"{at}: {one}" for at, one in enumerate(stage.workload.questions(MEMORIES))]
        self._vectors = {text: [rng.gauss(0, 1) for _ in range(DIMENSION)] for text in self.texts}

    def index(self) -> Any:
        """Return the index of a store, with an embedder that looks the vectors up."""

        async def embed(texts: list[str]) -> list[list[float]]:
            return [self._vectors[text] for text in texts]

        return {"dims": DIMENSION, "embed": embed, "fields": ["text"]}


async def _store_calls(store: Any, memories: _Memories) -> Calls:
    texts = memories.texts

    def put(number: int) -> Any:
        at = number % len(texts)
        value = {"text": texts[at], "seen": number}
        return store.aput(("users", f"u{number % USERS}"), f"m{at}", value)

    for number in range(len(texts)):
        for user in range(USERS):
            value = {"text": texts[number], "seen": 0}
            await store.aput(("users", f"u{user}"), f"m{number}", value)
    return {
        GET_ITEM: lambda n: store.aget(("users", f"u{n % USERS}"), f"m{n % len(texts)}"),
        PUT_ITEM: put,
        SEARCH: lambda n: store.asearch(
            ("users", f"u{n % USERS}"), query=texts[n % len(texts)], limit=10
        ),
    }
