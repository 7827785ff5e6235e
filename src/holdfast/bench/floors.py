"""The same work by the bare driver: the floors, by which Holdfast's times are divided.

It uses one open connection, parameters that are already encoded, and tables with only the columns
that the work needs. Results are not decoded, except those of transcripts: Holdfast has to decode
messages, so the floor decodes them too, into plain objects.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from holdfast.values.ids import new_id

SCHEMA = """
DROP SCHEMA IF EXISTS holdfast_floor CASCADE;
CREATE SCHEMA holdfast_floor;
CREATE TABLE holdfast_floor.t (session int, seq bigint, body text, PRIMARY KEY (session, seq));
CREATE TABLE holdfast_floor.m (
    session int, seq bigint, id text, at timestamptz, body text, PRIMARY KEY (session, seq));
CREATE TABLE holdfast_floor.s (k int PRIMARY KEY, state jsonb NOT NULL);
CREATE TABLE holdfast_floor.v (agent int, id int, e public.vector NOT NULL);
CREATE INDEX ON holdfast_floor.v (agent);
CREATE TABLE holdfast_floor.edges (src int, dst int);
CREATE INDEX ON holdfast_floor.edges (src);
CREATE INDEX ON holdfast_floor.edges (dst);
"""

APPEND = "INSERT INTO holdfast_floor.t (session, seq, body) VALUES ($1, $2, $3)"
APPEND_500 = (
    "INSERT INTO holdfast_floor.t (session, seq, body) "
    "SELECT $1, s, b FROM unnest($2::bigint[], $3::text[]) AS r (s, b)"
)
FILL_500 = (
    "INSERT INTO holdfast_floor.m (session, seq, id, at, body) "
    "SELECT $1, s, i, $3, $4 FROM unnest($2::text[]) WITH ORDINALITY AS r (i, s)"
)
LAST_20 = (
    "SELECT id, at, seq, body FROM holdfast_floor.m WHERE session = $1 ORDER BY seq DESC LIMIT 20"
)
ALL = "SELECT id, at, seq, body FROM holdfast_floor.m WHERE session = $1 ORDER BY seq"
BODIES = "SELECT body FROM holdfast_floor.m WHERE session = $1 ORDER BY seq"
STATE_GET = "SELECT state FROM holdfast_floor.s WHERE k = $1"
STATE_PATCH = (
    "INSERT INTO holdfast_floor.s AS s (k, state) VALUES ($1, $2) "
    "ON CONFLICT (k) DO UPDATE SET state = s.state || $2"
)
TOP_5 = (
    "WITH mine AS MATERIALIZED (SELECT id, e FROM holdfast_floor.v WHERE agent = $1) "
    "SELECT id FROM mine ORDER BY e OPERATOR(public.<=>) $2::real[]::public.vector LIMIT 5"
)
# A traversal must return the ids it reached, and all edges between them. One row of arrays, with
# the edges read by one index scan, is the fastest form found; ids alone take 0.7 of its time.
GRAPH_2 = (
    "WITH RECURSIVE walk (id, depth) AS (SELECT $1::int, 0 UNION "
    "SELECT CASE WHEN e.src = w.id THEN e.dst ELSE e.src END, w.depth + 1 "
    "FROM walk w JOIN holdfast_floor.edges e ON e.src = w.id OR e.dst = w.id WHERE w.depth < 2), "
    "nodes AS MATERIALIZED (SELECT DISTINCT id FROM walk) "
    "SELECT ARRAY(SELECT id FROM nodes), array_agg(e.src), array_agg(e.dst) "
    "FROM holdfast_floor.edges e "
    "WHERE e.src = ANY (ARRAY(SELECT id FROM nodes)) AND e.dst IN (SELECT id FROM nodes)"
)


async def decoded(connection: Any, sql: str, *args: Any) -> list[tuple[Any, ...]]:
    """Return rows whose last column is JSON text, with that text decoded.

    ::

        await decoded(connection, LAST_20, 0)
    """
    rows = await connection.fetch(sql, *args)
    return [(*row[:-1], msgspec.json.decode(row[-1])) for row in rows]


async def prepare(
    connection: Any, *, message: str, vectors: list[list[float]], edges: list[tuple[int, int]]
) -> None:
    """Store the same data as Holdfast: 500 messages, a state, 50 agents of 500 vectors, a graph.

    The connection uses a role that may not create tables; its login role creates them and grants
    access.
    """
    [(role,)] = await connection.fetch("SELECT current_user")
    await connection.execute("SET ROLE NONE")
    await connection.execute(SCHEMA)
    ids = [new_id() for _ in range(500)]
    await connection.execute(FILL_500, 0, ids, datetime.now(UTC), message)
    await connection.execute(STATE_PATCH, 1, '{"current_task": "\\"x\\"", "other": "\\"y\\""}')
    rows = [(agent, at, str(vector)) for agent in range(50) for at, vector in enumerate(vectors)]
    await connection.executemany(
        "INSERT INTO holdfast_floor.v VALUES ($1, $2, $3::text::public.vector)", rows
    )
    await connection.executemany("INSERT INTO holdfast_floor.edges VALUES ($1, $2)", edges)
    await connection.execute("ANALYZE")
    await connection.execute(
        f'GRANT USAGE ON SCHEMA holdfast_floor TO "{role}"; '
        f'GRANT ALL ON ALL TABLES IN SCHEMA holdfast_floor TO "{role}"; RESET ROLE'
    )
