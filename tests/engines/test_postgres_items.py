"""What items cost on Postgres: round trips and rows; and what maintenance deletes."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.bench.round_trips import RoundTrips
from holdfast.contracts.items import Items
from holdfast.engines.postgres import items as engine_items
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.items import PostgresItems
from holdfast.engines.postgres.maintenance import Maintenance
from holdfast.engines.postgres.tenancy import for_tenant
from holdfast.values.ids import new_ref
from holdfast.values.items import ItemKey, ItemPut
from tests.engines.item_writer import KEYS
from tests.engines.postgres import PostgresHarness, server
from tests.engines.postgres_database import (
    as_keeper,
    connected,
    empty_database,
    migrated_database,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")
NOTES = ("notes", "ana")
EAST, NORTH = [1.0, 0.0], [0.0, 1.0]


async def test_every_method_is_one_round_trip_but_a_search_that_refreshes_some_equals(
    tmp_path: Path,
) -> None:
    behind, trips = server(18), RoundTrips()
    listen = tmp_path / f".s.PGSQL.{behind.port}"
    async with (
        empty_database() as url,
        trips.between(listen, behind.folder / listen.name),
    ):
        away = url.replace(str(behind.folder), str(tmp_path))
        engine = await Postgres.open(away, auto_migrate=True, max_connections=1)
        store = Items(PostgresItems(engine))

        async def counted(name: str) -> dict[str, int]:
            space = (*NOTES, name)
            puts = [ItemPut(space, f"k{at}", {"n": at}, [[1.0, float(at)]], 60) for at in range(5)]
            puts += [ItemPut((*space, "same"), f"k{at}", {}, [EAST], 60) for at in range(5)]
            keys = [ItemKey(space, f"k{at}") for at in range(5)]
            found = {}
            for called, call in (
                ("put", lambda: store.put_many(puts)),
                ("get", lambda: store.get_many(keys)),
                ("get and refresh", lambda: store.get_many(keys, refresh=True)),
                ("search", lambda: store.search(space)),
                ("filter", lambda: store.search(space, filter={"n": 1})),
                ("near", lambda: store.search(space, vector=EAST)),
                ("none to refresh", lambda: store.search(("x",), vector=EAST, refresh=True)),
                ("namespaces", lambda: store.list_namespaces(prefix=space)),
                ("search and refresh", lambda: store.search(space, refresh=True)),
                ("page", lambda: store.search(space, limit=2, offset=1, refresh=True)),
                (
                    "near and refresh",
                    lambda: store.search(space, vector=NORTH, limit=3, refresh=True),
                ),
                # Which of the equals are returned, only the exact order tells.
                ("equals", lambda: store.search(space, vector=EAST, limit=3, refresh=True)),
            ):
                before = trips.count
                await call()
                found[called] = trips.count - before
            return found

        # The first time, the statements are prepared.
        prepared = await counted("one")
        again = await counted("two")
        await engine.aclose()
    assert again == dict.fromkeys(prepared, 1) | {"equals": 2}


async def _rows_read(connection: Any, sql: str, *args: Any) -> int:
    """How many rows of our tables a statement reads, those of functions included."""
    count = (
        "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables "
        "WHERE schemaname = 'holdfast'"
    )
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    async with connection.transaction():
        before = int(await connection.fetchval(count))
        await connection.fetch(for_tenant(sql), *args)
        return int(await connection.fetchval(count)) - before


async def test_a_call_reads_the_rows_of_its_own_namespaces_alone() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        store = Items(PostgresItems(engine))
        await store.put_many([ItemPut(NOTES, f"k{at}", {"n": at}, [EAST], 60) for at in range(5)])
        for user in range(300):
            path = ("notes", f"user{user}", "deep")
            await store.put_many([ItemPut(path, f"k{at}", {"n": at}) for at in range(10)])
        sql = engine_items._SQL
        begin, end = engine_items._range(NOTES)
        where = ("default", "", begin, end)
        text, own, key = ['["notes","ana"]'], ["k1"], engine_items._path_key(NOTES)
        put = (*("default", "", text, own, ["{}"], ["{}"], ["{}"]), [None], [None], [""])
        one = (*("default", "", [*NOTES], key, "k1", "{}", "{}", EAST), None, None, "")
        async with as_keeper(engine) as keeper:
            await keeper.execute("ANALYZE")
        # Below the policies, where an index serves fewer comparisons.
        async with engine.connection(writes=True) as lent:
            connection = lent.bare
            read = {
                "get": await _rows_read(connection, sql["get"], "default", "", [key], own),
                "get one": await _rows_read(connection, sql["get_one"], "default", "", key, "k1"),
                "refresh": await _rows_read(
                    connection, sql["get_refreshed"], "default", "", text, own
                ),
                "put": await _rows_read(connection, sql["put"], *put),
                "put one": await _rows_read(connection, sql["put_one"], *one),
                "search": await _rows_read(connection, sql["search"], *where, 10, 0),
                "near": await _rows_read(
                    connection, sql["search_near"], *where, 10, 0, EAST, 2, 1e-6
                ),
                "namespaces": await _rows_read(
                    connection, sql["list_namespaces"], *where, [*NOTES], [], None, 10, 0
                ),
            }
        await engine.aclose()
    assert max(read.values()) <= 12, read


async def test_the_key_of_a_path_sorts_as_the_path() -> None:
    dice = random.Random(5)  # noqa: S311 - not a secret
    letters = ["\x01", "\x02", "a", "b", ".", "é", "\U0010ffff"]
    paths = {
        tuple("".join(dice.choices(letters, k=dice.randint(1, 3))) for _ in range(length))
        for length in (1, 1, 2, 2, 3)
        for _ in range(60)
    }
    keys = {engine_items._path_key(one): one for one in paths}
    assert [keys[key] for key in sorted(keys)] == sorted(paths)
    for prefix in sorted(paths)[::9]:
        begin, end = engine_items._range(prefix)
        within = {one for key, one in keys.items() if begin <= key < end}
        assert within == {one for one in paths if one[: len(prefix)] == prefix}
    async with migrated_database() as url:
        engine = await Postgres.open(url, max_connections=1)
        async with as_keeper(engine) as keeper:
            for key, path in keys.items():
                assert await keeper.fetchval("SELECT holdfast.item_path_key($1)", path) == key
        await engine.aclose()


async def test_maintenance_deletes_expired_items_and_empty_namespaces() -> None:
    harness = PostgresHarness()
    await harness.open()
    store = harness.store("items")
    empty = await harness.raw("items")
    await store.put_many([ItemPut(NOTES, "old", {"n": 1}, [EAST], 60)])
    await store.put_many([ItemPut(("left",), "k", {}), ItemPut(("gone",), "k", {})])
    await store.put_many([ItemPut(("gone",), "k", None)])
    await harness.elapse(61)
    async with as_keeper(harness.engine) as connection:
        jobs = Maintenance(connection).jobs()
        assert await jobs["expired items"]() >= 1
        assert await jobs["empty namespaces"]() >= 2
        assert await store.list_namespaces() == [("left",)]
        await store.put_many([ItemPut(("left",), "k", None)])
        await jobs["empty namespaces"]()
    assert await harness.raw("items") == empty
    await harness.close()


async def test_puts_and_maintenance_at_once_lose_no_item() -> None:
    harness = PostgresHarness()
    await harness.open()
    store = harness.store("items")

    async def write(at: int) -> None:
        path = (f"space{at % 3}",)
        await store.put_many([ItemPut(path, f"k{at}", {"n": at})])
        if at % 2:
            await store.put_many([ItemPut(path, f"k{at}", None)])

    async def sweep() -> None:
        async with as_keeper(harness.engine) as connection:
            await Maintenance(connection).jobs()["empty namespaces"]()

    await asyncio.gather(*(sweep() if at % 4 == 3 else write(at) for at in range(80)))
    hits = await store.search((), limit=100)
    assert sorted(hit.item.value["n"] for hit in hits) == list(range(0, 80, 2))
    await harness.close()


async def test_a_put_waits_for_another_one_of_the_same_item_and_then_sees_it() -> None:
    """A put that expects no item conflicts with one that was not committed when it began."""
    harness = PostgresHarness()
    await harness.open()
    store = harness.store("items")
    many = [
        store.put_many(
            [ItemPut(NOTES, key, {"by": at}, expected_version=0) for key in ("a", "b", "c")]
        )
        for at in range(12)
    ]
    done = await asyncio.gather(*many, return_exceptions=True)
    [won] = [at for at, one in enumerate(done) if not isinstance(one, BaseException)]
    hits = await store.search(())
    assert [hit.item.value for hit in hits] == [{"by": won}] * 3
    await harness.close()


async def test_deletes_of_several_items_lock_those_that_are_absent() -> None:
    """A put of what a call has found absent comes before all of that call or after it."""
    new = {"by": "the put"}
    async with empty_database() as url, holdfast.open(url, background=False) as state:
        for space in (NOTES, ("absent",)):
            await state.items.put_many([ItemPut(NOTES, "m", {}), ItemPut(NOTES, "z", {})])
            async with connected(url) as holder:
                async with holder.transaction():
                    await holder.execute("SELECT FROM holdfast.items WHERE key = 'm' FOR UPDATE")
                    gone = [(space, "a"), (NOTES, "m"), (NOTES, "z"), (("zoo",), "a")]
                    deletes = asyncio.create_task(
                        state.items.put_many([ItemPut(*one, None) for one in gone])
                    )
                    await _until_waiting(url, 1, deletes)
                    put = asyncio.create_task(
                        state.items.put_many([ItemPut(space, "a", new), ItemPut(NOTES, "z", new)])
                    )
                    await _until_waiting(url, 2, put)
                await asyncio.gather(deletes, put)
            left = {(hit.item.key, hit.item.value["by"]) for hit in await state.items.search(())}
            assert left == {("a", "the put"), ("z", "the put")}, space
            await state.items.put_many([ItemPut(space, "a", None), ItemPut(NOTES, "z", None)])
            assert await state.items.search(()) == []


async def test_deletes_of_absent_items_leave_no_namespace() -> None:
    async with empty_database() as url, holdfast.open(url, background=False) as state:
        gone = [ItemPut((space,), "k", None) for space in ("a", "b", "c")]
        await state.items.put_many([*gone, ItemPut(("b",), "other", {})])
        async with connected(url) as other:
            paths = await other.fetch("SELECT path FROM holdfast.item_namespaces")
        assert [row["path"] for row in paths] == [["b"]]


async def test_the_first_calls_of_a_namespace_at_once_are_all_done() -> None:
    """Two unique indexes have its path: each call waits for the one that makes it."""
    async with empty_database() as url, holdfast.open(url, background=False) as state:
        for at in range(60):
            space = (f"space{at}",)
            one, two = [ItemPut(space, "k", {})], [ItemPut(space, key, None) for key in "xy"]
            await asyncio.gather(*(state.items.put_many(two if n % 2 else one) for n in range(6)))
        assert len(await state.items.search((), limit=100)) == 60


async def test_a_put_that_waited_counts_its_time_from_then() -> None:
    """Also if the row is as it was: the one that had locked it gave up."""
    async with empty_database() as url, holdfast.open(url, background=False) as state:
        await state.items.put_many([ItemPut(NOTES, "k", {}, ttl_seconds=3600)])
        async with connected(url) as first:
            locked = first.transaction()
            await locked.start()
            await first.execute("SELECT FROM holdfast.items FOR UPDATE")
            put = asyncio.create_task(
                state.items.put_many([ItemPut(NOTES, "k", {"new": True}, ttl_seconds=3600)])
            )
            await _until_waiting(url, 1, put)
            ended = await first.fetchval("SELECT clock_timestamp()")
            await locked.rollback()
            [version] = await put
        [found] = await state.items.get_many([ItemKey(NOTES, "k")])
        assert found is not None
        assert (found.value, found.version) == ({"new": True}, version)
        assert found.updated_at > ended


async def test_a_put_that_waits_for_another_one_has_the_later_version() -> None:
    async with empty_database() as url, holdfast.open(url, background=False) as state:
        await state.items.put_many([ItemPut(NOTES, "k", {"by": "nobody"})])
        async with connected(url) as first:
            async with first.transaction():
                await first.execute("SELECT FROM holdfast.items FOR UPDATE")
                second = asyncio.create_task(
                    state.items.put_many([ItemPut(NOTES, "k", {"by": "second"})])
                )
                await _until_waiting(url, 1, second)
                before, at = await first.fetchrow(
                    "UPDATE holdfast.items SET updated_at = clock_timestamp(), "
                    "version = nextval('holdfast.item_versions') RETURNING version, updated_at"
                )
            [version] = await second
        [found] = await state.items.get_many([ItemKey(NOTES, "k")])
        assert found is not None
        assert found.value == {"by": "second"}
        assert found.version == version > before
        assert found.updated_at > at


async def _until_waiting(url: str, many: int, last: asyncio.Task[Any]) -> None:
    """Return once so many calls wait for a lock, or the last of them has ended."""
    waiting = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    async with connected(url) as other:
        while not last.done() and await other.fetchval(waiting) < many:
            await asyncio.sleep(0.01)


async def test_kill_9_under_puts_leaves_each_call_whole_and_loses_no_acknowledged_one() -> None:
    async with empty_database() as url:
        tenant = new_ref()
        for _ in range(3):
            writer = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.engines.item_writer", url, tenant),
                stdout=asyncio.subprocess.PIPE,
                cwd=Path(__file__).parents[2],
            )
            assert writer.stdout is not None
            seen = [int(await writer.stdout.readline()) for _ in range(5)]
            os.kill(writer.pid, signal.SIGKILL)
            seen += [int(line) for line in (await writer.stdout.read()).split(b"\n") if line]
            await writer.wait()
            async with holdfast.open(url, tenant=tenant) as state:
                found = await state.items.search(("n",), limit=100)
            assert sorted(hit.item.key for hit in found) == KEYS
            [number] = {hit.item.value["n"] for hit in found}
            # The last call may have been done although nobody was told.
            assert number in (max(seen), max(seen) + 1)
