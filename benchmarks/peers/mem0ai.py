"""mem0: memories added as they are said and searched by meaning, on pgvector."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers.match import Calls, Line, Peer, Stage
from benchmarks.peers.workload import Said
from holdfast.engines.embedders.static import StaticEmbedder
from holdfast.spi.embedding import Embedder
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings

WRITERS = 8
BATCH = 20
SEARCH = "search an agent's memory"
ADD = "add a memory"
SETTLED = "add memories until nothing is left to do"


class Mem0(Peer):
    """``Memory`` with ``infer=False``, so that no model is asked, and pgvector with its defaults.

    Both embed with the same static word vectors, in the process. Its synchronous class is used,
    which spares it the hops to threads that its asynchronous one makes around the same calls.

    A search is by meaning and by words on both sides, among the memories of one agent, for five.
    Adding is compared twice. ``record`` returns when the memory is durable; its words and its
    vector are indexed afterwards, by a worker or by the next recall. mem0 embeds and indexes
    before it returns. So there is a line for what the agent waits for, and one in which ours
    embeds and indexes everything too, in batches as its worker does, with the time of it counted.
    """

    name = "mem0"
    packages = ("mem0ai", "psycopg", "psycopg-pool", "wordllama")
    install = "mem0ai psycopg[binary,pool] wordllama"
    lines = (
        Line(
            SEARCH,
            "memory.recall(text, 5)",
            "Memory.search(top_k=5)",
            3.0,
            "5 memories of one agent among many by words and meaning, the question embedded by the "
            "same model on both sides",
        ),
        Line(
            ADD,
            "memory.record",
            "Memory.add(infer=False)",
            3.0,
            "what the agent waits for: durable on return on both sides; mem0 has embedded it by "
            "then, ours does it in the background (the next line counts that)",
        ),
        Line(
            SETTLED,
            "memory.record of 20, then embed_pending",
            "Memory.add(infer=False) of 20",
            3.0,
            "20 memories of one agent one by one, until all are embedded and indexed by words and "
            "by meaning on both sides",
            block=2,
            each=BATCH,
            unit="µs a memory; the ratio is that of the medians",
        ),
    )

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """The memory of many agents on Postgres."""
        agents, memories = _size(stage)
        async with open_state(
            stage.url,
            tenant="mem0",
            embedder=StaticEmbedder(),
            settings=Settings(auto_migrate=True),
            background=False,
        ) as state:
            for agent in range(agents):
                turns = stage.workload.turns(memories, agent * memories)
                memory = state.memory(f"a{agent}", session_id=f"read {agent}")
                await memory.record_many([one.to_message() for one in turns])
            await state.ops.embed_pending()
            read = [state.memory(f"a{agent}") for agent in range(agents)]
            written = [state.memory(f"w{at}", session_id=f"w{at}") for at in range(WRITERS)]
            questions = stage.workload.questions(agents * memories)
            made = iter(stage.workload.messages(_adds(self.lines, stage)))

            def add(number: int) -> Coroutine[Any, Any, Any]:
                return written[number % WRITERS].record("message", next(made))

            async def settle(number: int) -> None:
                for _ in range(BATCH):
                    await add(number)
                await state.ops.embed_pending()

            yield {
                SEARCH: lambda n: read[n % agents].recall(questions[n % len(questions)], 5),
                ADD: add,
                SETTLED: settle,
            }

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        """The same on theirs, with nothing sent anywhere."""
        embedder = StaticEmbedder()
        await embedder.embed(["loads it"])
        agents, memories = _size(stage)
        with tempfile.TemporaryDirectory(prefix="hf-mem0-") as folder:
            memory = _open(stage.url, embedder, Path(folder))
            for agent in range(agents):
                for one in stage.workload.turns(memories, agent * memories):
                    memory.add([one.to_item()], user_id=f"a{agent}", infer=False)
            questions = stage.workload.questions(agents * memories)
            made = iter(stage.workload.turns(_adds(self.lines, stage)))

            async def search(number: int) -> Any:
                who = {"user_id": f"a{number % agents}"}
                return memory.search(questions[number % len(questions)], top_k=5, filters=who)

            def keep(number: int, one: Said) -> None:
                memory.add([one.to_item()], user_id=f"w{number % WRITERS}", infer=False)

            async def add(number: int) -> None:
                keep(number, next(made))

            async def settle(number: int) -> None:
                for _ in range(BATCH):
                    keep(number, next(made))

            try:
                yield {SEARCH: search, ADD: add, SETTLED: settle}
            finally:
                await asyncio.to_thread(memory.vector_store.connection_pool.close)
                memory.close()


def _size(stage: Stage) -> tuple[int, int]:
    """How many agents are read, and how many memories each has."""
    return (5, 40) if stage.quick else (20, 100)


def _adds(lines: tuple[Line, ...], stage: Stage) -> int:
    return sum(line.each * line.calls_of(quick=stage.quick) for line in lines)


def _open(url: str, embedder: Embedder, folder: Path) -> Any:
    # Read when it is imported: nothing is to be sent, and nothing is to be left in the home folder.
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = str(folder)
    # Without spaCy it matches words as they are written, and says so at each start.
    logging.getLogger("mem0").setLevel(logging.ERROR)
    from mem0 import Memory  # noqa: PLC0415 - optional

    # Neither is ever called: one is replaced, and without inference the other is not asked.
    service = {"provider": "openai", "config": {"api_key": "not used"}}
    store = {
        "provider": "pgvector",
        "config": {"connection_string": url, "embedding_model_dims": embedder.dimension},
    }
    memory = Memory.from_config(
        {
            "embedder": service,
            "llm": service,
            "vector_store": store,
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = _SameEmbedder(embedder)
    return memory


class _SameEmbedder:
    """The embedder of our side, as mem0 calls one."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """The vector of a text, whatever it is for."""
        del memory_action
        [vector] = _at_once(self._embedder.embed([text]))
        return list(vector)


def _at_once(
    coroutine: Coroutine[Any, Any, Sequence[Sequence[float]]],
) -> Sequence[Sequence[float]]:
    """The result of a coroutine that waits for nothing, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        found: Sequence[Sequence[float]] = done.value
        return found
    coroutine.close()
    raise RuntimeError("the embedder waits for something")
