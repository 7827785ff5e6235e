"""langgraph: its store beside our state, and its checkpoints beside what we keep of a step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.peers.match import Calls, Line, Peer, Stage
from benchmarks.peers.servers import holdfast_on
from holdfast.values.content import ChatMessage
from holdfast.values.tasks.events import StepKey

KEYS = 8
READ, WRITE = "read a state", "write a state"
SAVE, STEP = "save a checkpoint-sized state", "keep the checkpoint of every step"


class LanggraphStore(Peer):
    """``AsyncPostgresStore`` on one connection, as its own ``from_conn_string`` makes it.

    The same: a JSON object is stored under a key, in place of the one before, and read whole.
    """

    name = "langgraph AsyncPostgresStore"
    packages = ("langgraph", "langgraph-checkpoint-postgres", "psycopg", "psycopg-pool")
    install = "langgraph langgraph-checkpoint-postgres psycopg[binary,pool]"
    lines = (
        Line(
            READ,
            "short_term.get_state",
            "AsyncPostgresStore.aget",
            4.0,
            "one object of 8 fields by its key, whole; theirs on a connection of its own, which "
            "is no slower than its pool",
        ),
        Line(
            WRITE,
            "short_term.set_state",
            "AsyncPostgresStore.aput",
            1.5,
            "the same object in place of the one before, durable on return; ours also counts its "
            "version",
        ),
    )

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """Working state on Postgres."""
        document = stage.workload.document()
        async with holdfast_on(stage.url, "store") as state:
            short_term = state.short_term
            for at in range(KEYS):
                await short_term.set_state(f"s{at}", document)
            yield {
                READ: lambda n: short_term.get_state(f"s{n % KEYS}"),
                WRITE: lambda n: short_term.set_state(f"s{n % KEYS}", document | {"step": n}),
            }

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        """The same on theirs."""
        from langgraph.store.postgres import AsyncPostgresStore  # noqa: PLC0415 - optional

        document = stage.workload.document()
        async with AsyncPostgresStore.from_conn_string(stage.url) as store:
            await store.setup()
            for at in range(KEYS):
                await store.aput(("bench", f"s{at}"), "state", document)
            yield {
                READ: lambda n: store.aget(("bench", f"s{n % KEYS}"), "state"),
                WRITE: lambda n: store.aput(
                    ("bench", f"s{n % KEYS}"), "state", document | {"step": n}
                ),
            }


class LanggraphSaver(Peer):
    """``AsyncPostgresSaver`` on one connection, as its own ``from_conn_string`` makes it.

    A checkpoint is what a graph needs to go on: twenty messages, and where it is. It has two
    counterparts here, and each is held against it with the same payload. A conversation goes on
    from its newest state alone, which is ``set_state``; a task goes on from the results of all its
    steps, so each is kept beside those before, as theirs are, which is ``record_step``.
    """

    name = "langgraph AsyncPostgresSaver"
    packages = LanggraphStore.packages
    install = LanggraphStore.install
    lines = (
        Line(
            SAVE,
            "short_term.set_state",
            "AsyncPostgresSaver.aput",
            2.0,
            "20 messages and a place; ours keeps the newest with its version, theirs adds to the "
            "thread's checkpoints, and has no call that only keeps the newest",
        ),
        Line(
            STEP,
            "tasks.record_step",
            "AsyncPostgresSaver.aput",
            2.0,
            "the same payload, kept beside that of the steps before on both sides; ours checks the "
            "lease with it",
        ),
    )

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """Working state, and the steps of a task."""
        payload = stage.workload.checkpoint(0)
        async with holdfast_on(stage.url, "saver") as state:
            short_term, tasks = state.short_term, state.tasks
            leases = []
            for _ in range(KEYS):
                await tasks.submit("bench", ChatMessage.user("go"))
                [claimed] = await tasks.claim("w1", lease_seconds=3600)
                leases.append(claimed.lease)
            yield {
                SAVE: lambda n: short_term.set_state(f"s{n % KEYS}", payload | {"step": n}),
                STEP: lambda n: tasks.record_step(
                    leases[n % KEYS], StepKey("node", n), payload | {"step": n}
                ),
            }

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        """The same on theirs: as the loop of a graph calls it after a step."""
        from langgraph.checkpoint.base import empty_checkpoint  # noqa: PLC0415 - optional
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver  # noqa: PLC0415

        payload = stage.workload.checkpoint(0)
        count = sum(line.calls_of(quick=stage.quick) for line in self.lines)
        made = []
        for at in range(count):
            version = f"{at + 1:032}.0"
            versions = dict.fromkeys(payload, version)
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"] = payload | {"step": at}
            checkpoint["channel_versions"] = versions
            config = {"configurable": {"thread_id": f"t{at % KEYS}", "checkpoint_ns": ""}}
            metadata = {"source": "loop", "step": at, "parents": {}}
            made.append((config, checkpoint, metadata, versions))
        ready = iter(made)
        async with AsyncPostgresSaver.from_conn_string(stage.url) as saver:
            await saver.setup()
            yield dict.fromkeys((SAVE, STEP), lambda _n: saver.aput(*next(ready)))
