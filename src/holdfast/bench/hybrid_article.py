"""The sample of the article "Redis vs. Postgres", reimplemented from its text, as a contestant.

Its schema and statements are those of the article, except for the dimension, which it says to set:
working state is one JSON document in Redis, events with their vectors are in one table with a
global HNSW index, and recall orders by distance behind a filter on the agent. Postgres applies
that filter to what the index returned (40 rows unless ``hnsw.ef_search`` says otherwise), so that
most of the rows of one agent among many are never looked at.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from typing import Any

import asyncpg
from redis.asyncio import Redis

from holdfast.bench.hybrid_workload import Array, K, Workload, working_state
from holdfast.bench.servers import Servers

SCHEMA = """
CREATE TABLE agent_sessions (
    session_id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    agent_id VARCHAR(128) NOT NULL,
    started_at TIMESTAMPTZ DEFAULT now(),
    ended_at TIMESTAMPTZ,
    session_metadata JSONB DEFAULT '{{}}');
CREATE TABLE memory_events (
    event_id BIGSERIAL PRIMARY KEY,
    session_id UUID REFERENCES agent_sessions(session_id),
    agent_id VARCHAR(128) NOT NULL,
    event_type VARCHAR(64) NOT NULL,
    payload JSONB NOT NULL,
    embedding vector({dimension}),
    idempotency_key UUID NOT NULL DEFAULT gen_random_uuid(),
    created_at TIMESTAMPTZ DEFAULT now(),
    CONSTRAINT uq_memory_event UNIQUE (idempotency_key));
CREATE INDEX idx_memory_embedding ON memory_events
    USING hnsw (embedding vector_cosine_ops) WITH (m = 16, ef_construction = 128);
CREATE INDEX idx_memory_agent_id ON memory_events(agent_id);
"""
INSERT = """INSERT INTO memory_events
(session_id, agent_id, event_type, payload, embedding, idempotency_key)
VALUES ($1, $2, $3, $4::jsonb, $5::real[]::vector, $6::uuid)
ON CONFLICT ON CONSTRAINT uq_memory_event DO NOTHING"""
RECALL = """WITH ranked AS (
    SELECT event_type, payload, created_at, (embedding <=> $1::real[]::vector) AS dist
    FROM memory_events WHERE agent_id = $2 ORDER BY dist LIMIT $3)
SELECT event_type, payload, created_at, 1 - dist AS similarity FROM ranked ORDER BY dist"""
RECENT = "SELECT payload FROM memory_events WHERE agent_id = $1 ORDER BY created_at DESC LIMIT 10"

NO_LOG = (
    "it has no log of turns: what is not in the working state is not kept until a worker flushes "
    "it, and the worker is left to the reader"
)


class Article:
    """The article's bridge: Redis for working state, Postgres for events and vectors."""

    name = "article"

    def __init__(self) -> None:
        self.cannot = {"record": NO_LOG}

    async def open(self, servers: Servers, dimension: int) -> str:
        """Create its tables in a separate database, with its pool of 5 to 20. Returns the URL."""
        url = await servers.database("article")
        self._pool = await asyncpg.create_pool(url, min_size=5, max_size=20)
        self._redis = Redis.from_url(servers.valkey, decode_responses=True)
        await self._pool.execute(SCHEMA.format(dimension=dimension))
        return url

    async def load(self, workload: Workload) -> None:
        """Store each agent's events by the article's statement, one batch per session."""
        for agent in range(workload.agents):
            await self.save(agent, 0)
            await self._insert(agent, workload.texts[agent], workload.vectors[agent])

    async def _insert(self, agent: int, texts: list[str], vectors: Array) -> None:
        name, session = _name(agent), uuid.uuid5(uuid.NAMESPACE_OID, _name(agent))
        await self._pool.execute(
            "INSERT INTO agent_sessions (session_id, agent_id) VALUES ($1, $2)", session, name
        )
        rows = []
        for at, (text, vector) in enumerate(zip(texts, vectors.tolist(), strict=True)):
            payload = json.dumps({"turn": at, "text": text}, sort_keys=True)
            raw = f"{session}:{name}:observation:{payload}"
            key = uuid.UUID(hashlib.sha256(raw.encode()).hexdigest()[:32])
            rows.append((session, name, "observation", payload, vector, key))
        await self._pool.executemany(INSERT, rows)

    async def hot(self, agent: int) -> Any:
        """Return the whole document, decoded: there is no partial read."""
        document = await self._redis.get(f"agent:memory:{_name(agent)}")
        return json.loads(document or "{}")["current_task"]

    async def save(self, agent: int, number: int) -> None:
        """Store the whole document again: there is no merge."""
        document = working_state(agent) | {"current_task": f"task {number}"}
        await self._redis.set(f"agent:memory:{_name(agent)}", json.dumps(document), ex=3600)

    async def episodic(self, agent: int) -> list[int]:
        """Return the ten newest events. A batch has one timestamp: any ten of its session."""
        return [_turn(row) for row in await self._pool.fetch(RECENT, _name(agent))]

    async def semantic(self, agent: int, vector: list[float]) -> list[int]:
        """Return the nearest events of an agent, filtered after the index returned its rows."""
        rows = await self._pool.fetch(RECALL, vector, _name(agent), K)
        return [_turn(row) for row in rows]

    async def record(self, agent: int, number: int) -> None:
        """Raise: the article has no way to record one event."""
        raise NotImplementedError(NO_LOG)

    async def settle(self) -> None:
        """Do nothing: its writes cause no background work."""

    async def plan(self, vector: list[float]) -> str:
        """Return which index the planner uses for its recall."""
        rows = await self._pool.fetch(f"EXPLAIN {RECALL}", vector, _name(0), K)
        scans = [row[0].strip() for row in rows if "Scan" in row[0] and "ranked" not in row[0]]
        return "; ".join(one.removeprefix("->").strip().partition("  (")[0] for one in scans)

    async def close(self) -> None:
        """Disconnect from Redis and Postgres."""
        await asyncio.gather(self._pool.close(), self._redis.aclose())


def _name(agent: int) -> str:
    return f"agent-{agent}"


def _turn(row: Any) -> int:
    return int(json.loads(row["payload"])["turn"])
