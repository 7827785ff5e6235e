"""The logger ``holdfast``, and no other, logs each retry with its cause."""

from __future__ import annotations

import asyncpg
import pytest
import stamina

from holdfast.contracts.short_term import States
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.redis.short_term import RedisStates
from holdfast.values.errors import UnavailableError
from tests.engines.postgres_database import connected, empty_database
from tests.engines.redis_engine import engine, own_server

pytestmark = pytest.mark.asyncio

FAILS_TWICE = (
    "SELECT CASE WHEN nextval('calls') <= 2"
    " THEN pg_terminate_backend(pg_backend_pid()) ELSE true END"
)
"""The first failure is repeated at once, and the second after a pause."""


async def test_a_statement_that_is_tried_again_is_told_with_its_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with empty_database() as url:
        async with connected(url) as admin:
            await admin.execute("CREATE SEQUENCE calls")
        # As the superuser, who may end its own connection.
        async with asyncpg.create_pool(url, min_size=1) as pool:
            opened = await Postgres.from_pool(pool, auto_migrate=True, allow_unsafe=True)
            assert await opened.fetch_across(FAILS_TWICE, safe=True)
            await opened.aclose()
    [record] = caplog.records
    assert record.name == "holdfast.postgres"
    assert "terminating connection due to administrator command" in record.getMessage()


async def test_a_command_that_is_tried_again_is_told_with_its_cause(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engines.redis.engine.RETRY_SECONDS", 0.3)
    with own_server() as own:
        async with engine(own.url) as opened:
            own.stop()
            with pytest.raises(UnavailableError):
                await States(RedisStates(opened)).get_state("s1")
    assert {record.name for record in caplog.records} == {"holdfast.redis"}
    assert all("Error" in record.getMessage() for record in caplog.records)


async def test_what_others_try_again_is_told_as_they_wish(caplog: pytest.LogCaptureFixture) -> None:
    for attempt in stamina.retry_context(on=ValueError, attempts=2, wait_initial=0, wait_max=0):
        with attempt:
            if attempt.num == 1:
                raise ValueError("once")
    assert [record.name for record in caplog.records] == ["stamina"]
