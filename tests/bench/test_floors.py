"""The floors of ``holdfast bench stores`` run on the connection that the stores use."""

from __future__ import annotations

import pytest

from holdfast.bench import floors
from holdfast.engines.postgres.connect import APP_ROLE
from holdfast.engines.postgres.engine import Postgres
from holdfast.spi.log_entry import LogEntry
from holdfast.values.content import ChatMessage
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_floor_of_a_read_is_decoded_on_a_connection_that_may_make_no_tables() -> None:
    body = LogEntry.of_message(
        "message", ChatMessage.user("low tide"), agent="a1", session="s1", run=""
    ).body
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        async with engine.connection(writes=True) as connection:
            await floors.prepare(connection, message=body, vectors=[[1.0, 0.0]], edges=[(1, 2)])
            assert await connection.fetchval("SELECT current_user") == APP_ROLE
            newest = await floors.decoded(connection, floors.LAST_20, 0)
            everything = await floors.decoded(connection, floors.ALL, 0)
            bodies = await connection.fetch(floors.BODIES, 0)
        await engine.aclose()
    assert [seq for _id, _at, seq, _value in newest] == list(range(500, 480, -1))
    assert [seq for _id, _at, seq, _value in everything] == list(range(1, 501))
    assert newest[0][-1] == {
        "v": 1,
        "role": "user",
        "content": [{"type": "text", "text": "low tide"}],
    }
    assert {row[0] for row in bodies} == {body}
