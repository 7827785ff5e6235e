"""Tenants take turns at connections, and a search ends in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.tenant_turns import TenantTurns
from holdfast.values.errors import TimedOutError
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_tenant_alone_has_all_connections() -> None:
    turns = TenantTurns(3)
    for _ in range(3):
        await turns.take("a")
    waiting = asyncio.create_task(turns.take("a"))
    await _settle()
    assert turns.waiting
    assert not waiting.done()
    turns.give_back("a")
    await waiting
    assert not turns.waiting


async def test_tenants_that_wait_take_turns() -> None:
    turns, begun = TenantTurns(1), list[str]()

    async def work(tenant: str) -> None:
        await turns.take(tenant)
        begun.append(tenant)
        turns.give_back(tenant)

    await turns.take("a")
    tasks = [asyncio.create_task(work(tenant)) for tenant in "aaaabbc"]
    await _settle()
    turns.give_back("a")
    await asyncio.gather(*tasks)
    assert begun == list("abcabaa")


async def test_a_tenant_with_half_of_the_connections_comes_after_others() -> None:
    turns = TenantTurns(4)
    for _ in range(4):
        await turns.take("a")
    more = [asyncio.create_task(turns.take("a")) for _ in range(3)]
    await _settle()
    others = [asyncio.create_task(turns.take("b")) for _ in range(2)]
    await _settle()
    for _ in range(2):
        turns.give_back("a")
    await _settle()
    assert [one.done() for one in (*more, *others)] == [False] * 3 + [True] * 2
    turns.give_back("a")
    await _settle()
    assert sum(one.done() for one in more) == 1
    for one in more:
        one.cancel()


async def test_a_turn_that_is_no_longer_wanted_goes_to_the_next() -> None:
    turns = TenantTurns(1)
    await turns.take("a")
    first, second = (asyncio.create_task(turns.take(one)) for one in "bc")
    await _settle()
    first.cancel()
    turns.give_back("a")
    await second
    turns.give_back("c")
    # Given and cancelled in the same moment.
    await turns.take("a")
    first, second = (asyncio.create_task(turns.take(one)) for one in "bc")
    await _settle()
    turns.give_back("a")
    first.cancel()
    await second
    turns.give_back("c")
    await turns.take("d")
    assert not turns.waiting


@pytest_asyncio.fixture(loop_scope="session")
async def engine() -> AsyncIterator[Postgres]:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=2)
        yield engine
        await engine.aclose()


async def test_one_tenant_cannot_keep_another_from_the_database(engine: Postgres) -> None:
    ended = list[str]()

    async def ask(tenant: str) -> None:
        await engine.fetch("SELECT $1::text, pg_sleep(0.05)", tenant, safe=True)
        ended.append(tenant)

    many = [asyncio.create_task(ask("many")) for _ in range(12)]
    await _settle()
    one = asyncio.create_task(ask("one"))
    await asyncio.gather(*many, one)
    # Two were at work when it came, and at most two more end before it does.
    assert ended.index("one") <= 4


async def test_a_search_that_takes_too_long_is_cancelled_and_says_what_to_do(
    engine: Postgres,
) -> None:
    engine.search_timeout_seconds = 0.2
    with pytest.raises(TimedOutError, match=r"within 0.2 s.*HOLDFAST_SEARCH_TIMEOUT_SECONDS"):
        await engine.search("SELECT $1::text, pg_sleep(600)", "t")
    sleeping = "SELECT FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' "
    sleeping += "AND state = 'active' AND pid <> pg_backend_pid()"
    async with asyncio.timeout(60):
        while await engine.fetch_across(sleeping, safe=True):
            await asyncio.sleep(0.05)
    assert await engine.fetchval("SELECT $1::text", "still here", safe=True) == "still here"
