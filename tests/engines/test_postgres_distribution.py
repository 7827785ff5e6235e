"""``distribute``: what it refuses, and that it can be repeated."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.engines.postgres.admin import PostgresAdmin
from holdfast.engines.postgres.distribution import Distribution, Node, Step
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.listener import Listener
from holdfast.testing.valkey_server import ValkeyServer
from holdfast.values.errors import ConfigError
from tests.engines import citus
from tests.engines.postgres_database import connected, migrated_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
with_citus = pytest.mark.skipif(not citus.URL, reason="HOLDFAST_CITUS_URL is not set")


async def test_without_the_extension_it_says_what_to_install_and_changes_nothing() -> None:
    async with migrated_database() as url:
        admin = await PostgresAdmin.open(url)
        with pytest.raises(ConfigError, match="install Citus on every node"):
            await admin.distribution()
        with pytest.raises(ConfigError, match="install Citus on every node"):
            await admin.distribute(move_rows=True, progress=lambda _: None)
        assert await admin.problems() == []
        await admin.aclose()
        async with connected(url) as connection:
            assert await connection.fetchval("SELECT holdfast.confine_tables()") == 0


async def test_what_is_missing_is_what_is_not_where_it_should_be() -> None:
    here = Step("table", "holdfast.tasks", "by tenant", "by tenant", None)
    there = Step("table", "holdfast.events", "by tenant", "on the coordinator", "SELECT 1")
    found = Distribution("14.0-1", (Node("a:5432", takes_shards=True, shards=32),), (here, there))
    assert found.missing == (there,)


@with_citus
async def test_a_distributed_database_is_distributed_again_without_a_change() -> None:
    harness = citus.CitusHarness()
    await harness.open()
    await harness.close()
    admin = await PostgresAdmin.open(citus.URL)
    try:
        found = await admin.distribution()
        assert found.missing == ()
        assert sum(node.shards for node in found.nodes) > 0
        assert await admin.distribute(move_rows=False, progress=lambda _: None) == ()
        assert (await admin.distribution()) == found
    finally:
        await admin.aclose()


@with_citus
async def test_a_run_that_was_killed_goes_on_where_it_ended() -> None:
    harness = citus.CitusHarness()
    await harness.open()
    await harness.close()
    async with connected(citus.URL) as connection:
        # What a run leaves behind that did not come to this function and to this setting.
        await connection.execute(
            "ALTER FUNCTION holdfast.walk SET plan_cache_mode = 'force_generic_plan'"
        )
    admin = await PostgresAdmin.open(citus.URL)
    try:
        [left] = (await admin.distribution()).missing
        assert (left.kind, left.found) == ("plan", "generic")
        seen: list[Step] = []
        await admin.distribute(move_rows=False, progress=seen.append)
        assert seen == [left]
        assert (await admin.distribution()).missing == ()
    finally:
        await admin.aclose()


@with_citus
async def test_a_distributed_database_is_migrated_and_distributed_again() -> None:
    harness = citus.CitusHarness()
    await harness.open()
    await harness.close()
    async with connected(citus.URL) as connection:
        # As if an earlier version had made these functions.
        await connection.execute("DELETE FROM holdfast.function_files WHERE name <> 'notices'")
    admin = await PostgresAdmin.open(citus.URL)
    try:
        assert await admin.migrate()
        missing = (await admin.distribution()).missing
        assert {step.kind for step in missing} == {"form", "plan"}
        done = await admin.distribute(move_rows=False, progress=lambda _: None)
        assert [step.name for step in done] == [step.name for step in missing]
        assert (await admin.distribution()).missing == ()
    finally:
        await admin.aclose()


@with_citus
async def test_waiters_poll_where_notices_of_workers_do_not_arrive() -> None:
    engine = await Postgres.open(citus.URL)
    try:
        listener = engine.singleton(Listener)
        with listener.bell("tides") as bell:
            listener.start()
            await bell.wait(found=True)
            assert not listener.hears
    finally:
        await engine.aclose()


@with_citus
async def test_the_hybrid_is_refused_on_a_distributed_database() -> None:
    harness = citus.CitusHarness()
    await harness.open()
    await harness.close()
    server = ValkeyServer(fsync="always")
    server.start()
    try:
        with pytest.raises(ConfigError, match="REDIS_URL: the hybrid memory needs one Postgres"):
            await holdfast.open(citus.URL, redis=server.url).__aenter__()
    finally:
        server.remove()
