"""``holdfast bench stores``: the hot calls of the Postgres engine, beside the bare driver."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from holdfast.bench import floors, policies
from holdfast.bench.contest import Contest, Result, measure
from holdfast.bench.policies import Cost
from holdfast.bench.recovery import after_kill
from holdfast.bench.round_trips import RoundTrips
from holdfast.contracts.episodes import EpisodicMemory
from holdfast.contracts.graph import KnowledgeGraph
from holdfast.contracts.history import History
from holdfast.contracts.short_term import States
from holdfast.contracts.vectors import Vectors
from holdfast.engines.postgres.embedded import EmbeddedPostgres, socket_folder
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.episodes import PostgresEpisodes
from holdfast.engines.postgres.graph import PostgresGraph
from holdfast.engines.postgres.short_term import PostgresStates
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.engines.postgres.vector import PostgresVectors
from holdfast.spi.log_entry import LogEntry
from holdfast.values.content import ChatMessage
from holdfast.values.documents import Document
from holdfast.values.events import Event
from holdfast.values.graph import Entity, Relationship
from holdfast.values.identity import AgentId

AGENT = AgentId("bench", "a1")
BODY = "the tide is low and the harbour is full of ships " * 36
DIMENSION, ROWS, AGENTS = 64, 500, 50
FILTERED = f"recall top-5 of one agent among {AGENTS}"
UNDECODED = "all 500 (floor: bodies, undecoded)"


class Stores:
    """The stores on one engine, filled with the same data as for the bare driver."""

    def __init__(self, engine: Postgres) -> None:
        self.history = History(PostgresTranscripts(engine, tenant="bench"))
        self.state = States(PostgresStates(engine, tenant="bench"))
        self.vectors = Vectors(PostgresVectors(engine, tenant="bench"))
        self.graph = KnowledgeGraph(PostgresGraph(engine, tenant="bench"))
        self.episodes = EpisodicMemory(PostgresEpisodes(engine, tenant="bench"))
        # Made beforehand: to make a message is the agent's work, not the store's.
        self._messages: list[ChatMessage] = []

    def _message(self) -> ChatMessage:
        if not self._messages:
            self._messages = _turns(100_000)
        return self._messages.pop()

    async def fill(self, vectors: list[list[float]], edges: list[tuple[int, int]]) -> None:
        """Store the same data as ``floors.prepare``."""
        await self.history.append_many(AGENT, _turns(ROWS), session_id="read")
        await self.state.set_state("s1", {"current_task": "x", "other": "y"})
        for agent in range(AGENTS):
            documents = [
                Document([], f"{agent}.{at}", vector, {"agent": agent})
                for at, vector in enumerate(vectors)
            ]
            await self.vectors.add(documents, collection=f"c{agent}")
            events = [
                Event(_agent(agent), f"e{agent}", "note", {"n": at}) for at in range(len(vectors))
            ]
            await self.episodes.append(events, embeddings=vectors)
        nodes = sorted({node for edge in edges for node in edge})
        await self.graph.add_entities([Entity("Node", {}, str(node)) for node in nodes])
        await self.graph.add_relationships(
            [Relationship(str(src), str(dst), "knows", {}) for src, dst in edges]
        )

    def ours(self, query: list[float]) -> dict[str, Callable[[int], Any]]:
        """Return the operations by name."""
        return {
            "append 1": lambda n: self.history.append(
                AGENT, self._message(), session_id=f"w{n % 8}"
            ),
            "append at length 10,000": lambda _n: self.history.append(
                AGENT, self._message(), session_id="long"
            ),
            "append_many(500)": lambda n: self.history.append_many(
                AGENT, [self._message() for _ in range(500)], session_id=f"m{n}"
            ),
            "last 20": lambda _n: self.history.get_messages(
                AGENT, session_id="read", recent_limit=20
            ),
            "all 500": lambda _n: self.history.get_messages(AGENT, session_id="read"),
            UNDECODED: lambda _n: self.history.get_messages(AGENT, session_id="read"),
            "state get": lambda _n: self.state.get_state("s1", keys=["current_task"]),
            "state patch": lambda n: self.state.update_state("s1", {"current_task": n}),
            "vector top-5": lambda n: self.vectors.search(query, collection=f"c{n % AGENTS}"),
            FILTERED: lambda n: self.episodes.recall(_agent(n % AGENTS), query),
            "graph depth 2": lambda n: self.graph.get_neighbors(str(n % 200), depth=2),
        }


def _agent(number: int) -> AgentId:
    return AgentId("bench", f"a{number}")


def _turns(count: int) -> list[ChatMessage]:
    return [ChatMessage.user(BODY) for _ in range(count)]


class RunningTask:
    """The engine's one connection, lent to the bare driver: both use the same server process.

    Two server processes would run on different cores with different caches, which would distort the
    comparison.
    """

    def __init__(self, engine: Postgres) -> None:
        self._engine = engine
        self._connection: Any = None

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Hold the connection while a block of the bare driver runs."""
        async with self._engine.connection(writes=True) as connection:
            self._connection = connection.bare
            yield

    def fetch(self, sql: str, *args: Any) -> Awaitable[Any]:
        """Run a statement with the bare driver, and return its rows."""
        return cast("Awaitable[Any]", self._connection.fetch(sql, *args))

    def execute(self, sql: str, *args: Any) -> Awaitable[Any]:
        """Run a statement with the bare driver."""
        return cast("Awaitable[Any]", self._connection.execute(sql, *args))


def _floor(held: RunningTask, body: str, query: list[float]) -> dict[str, Callable[[int], Any]]:
    return {
        "append 1": lambda n: held.execute(floors.APPEND, 1, n, body),
        "append at length 10,000": lambda n: held.execute(floors.APPEND, 4, n, body),
        "append_many(500)": lambda n: held.execute(
            floors.APPEND_500, 1000 + n, list(range(500)), [body] * 500
        ),
        "last 20": lambda _n: floors.decoded(held, floors.LAST_20, 0),
        "all 500": lambda _n: floors.decoded(held, floors.ALL, 0),
        UNDECODED: lambda _n: held.fetch(floors.BODIES, 0),
        "state get": lambda _n: held.fetch(floors.STATE_GET, 1),
        "state patch": lambda n: held.execute(floors.STATE_PATCH, 1, f'{{"current_task": "{n}"}}'),
        "vector top-5": lambda n: held.fetch(floors.TOP_5, n % AGENTS, query),
        FILTERED: lambda n: held.fetch(floors.TOP_5, n % AGENTS, query),
        "graph depth 2": lambda n: held.fetch(floors.GRAPH_2, n % 200),
    }


async def fidelity(stores: Stores, vectors: list[list[float]]) -> float:
    """Return the share of the true five nearest that recall returns, over all agents."""
    rng = np.random.default_rng(11)
    table = np.asarray(vectors, dtype=np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    right = 0
    for agent in range(AGENTS):
        query = rng.normal(size=DIMENSION).astype(np.float32)
        exact = {int(at) for at in np.argsort(-(table @ query), kind="stable")[:5]}
        found = await stores.episodes.recall(_agent(agent), query.tolist())
        right += len(exact & {one.event.payload["n"] for one in found})
    return right / (5 * AGENTS)


BARS = {
    "append 1": 1.5,
    "append at length 10,000": 1.5,
    "append_many(500)": 2.0,
    "last 20": 1.3,
    "all 500": 1.3,
    UNDECODED: 2.4,
    "state get": 1.3,
    "state patch": 1.5,
    "vector top-5": 1.5,
    FILTERED: 1.5,
    "graph depth 2": 1.5,
}
FEW = {"append_many(500)": 2, "all 500": 5, UNDECODED: 5}
"""Slow operations, and how many of them are in a block."""


@dataclass(frozen=True, slots=True)
class Report:
    """The results of all contests, and figures that are no ratios."""

    results: list[Result]
    fidelity: float
    recovery_seconds: float
    policies: list[Cost]

    @property
    def growth(self) -> float:
        """The cost of an append to a long session, relative to a short one."""
        taken = {result.name: result.ours_p50 for result in self.results}
        return round(taken["append at length 10,000"] / taken["append 1"], 2)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "results": [result.to_json() for result in self.results],
            "append at length 10,000 against length 10": self.growth,
            "policies": [cost.to_json() for cost in self.policies],
            "fidelity@5": round(self.fidelity, 4),
            "seconds from kill -9 of Postgres to the next append": round(self.recovery_seconds, 2),
        }


async def run(progress: Callable[[str], None], *, quick: bool = False) -> Report:
    """Start a Postgres, fill it, and measure each operation beside the bare driver."""
    rng = random.Random(7)  # noqa: S311 - the same data each time
    vectors = [[rng.gauss(0, 1) for _ in range(DIMENSION)] for _ in range(ROWS)]
    edges = [(rng.randrange(200), rng.randrange(200)) for _ in range(600)]
    query = [rng.gauss(0, 1) for _ in range(DIMENSION)]
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as name:
        folder = Path(name)
        os.chmod(folder, 0o711)  # noqa: PTH101, S103 - the server may run as another user
        embedded = await EmbeddedPostgres.open(folder / "state")
        try:
            engine = await Postgres.open(embedded.url, auto_migrate=True, max_connections=1)
            held = RunningTask(engine)
            progress("filling")
            stores = Stores(engine)
            await stores.fill(vectors, edges)
            for _ in range(20):
                await stores.history.append_many(AGENT, _turns(500), session_id="long")
            async with engine.connection(writes=True) as connection:
                message = LogEntry.of_message(
                    "message", ChatMessage.user(BODY), agent="bench/a1", session="read", run=""
                ).body
                await floors.prepare(connection, message=message, vectors=vectors, edges=edges)
                for start in range(0, 10_000, 500):
                    rows = list(range(-start - 500, -start))
                    await connection.execute(floors.APPEND_500, 4, rows, [BODY] * 500)
            trips = await _count_round_trips(embedded, folder, query)
            results = []
            theirs = _floor(held, BODY, query)
            for operation, ours in stores.ours(query).items():
                progress(operation)
                contest = Contest(
                    operation,
                    ours,
                    theirs[operation],
                    BARS[operation],
                    blocks=6 if quick else 30,
                    block=FEW.get(operation, 20),
                    lent=held.lent,
                )
                results.append(await measure(contest, trips[operation]))
            true_share = await fidelity(stores, vectors)
            await engine.aclose()
            costs = await policies.run(embedded.url, progress, quick=quick)
        finally:
            await embedded.aclose()
        progress("kill -9")
        seconds = await after_kill(folder / "killed")
    return Report(results, true_share, seconds, costs)


async def _count_round_trips(
    embedded: EmbeddedPostgres, folder: Path, query: list[float]
) -> dict[str, float]:
    """Count the round trips of one call of each operation, after its statement is prepared."""
    proxy = folder / "proxy"
    proxy.mkdir(exist_ok=True)
    counter = RoundTrips()
    server = socket_folder(embedded.folder) / ".s.PGSQL.5432"
    async with counter.between(proxy / ".s.PGSQL.5432", server):
        engine = await Postgres.open(
            f"postgresql://postgres@/postgres?host={proxy}", max_connections=1
        )
        found = {}
        for operation, call in Stores(engine).ours(query).items():
            await call(-1)
            await call(-2)
            before = counter.count
            await call(-3)
            found[operation] = float(counter.count - before)
        await engine.aclose()
    return found
