"""What a step of a thread costs on Postgres: round trips, rows and plans, however long it is."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.bench.round_trips import RoundTrips
from holdfast.contracts.checkpoints import Checkpoints
from holdfast.engines.postgres import checkpoints as engine_checkpoints
from holdfast.engines.postgres.checkpoints import PostgresCheckpoints
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.maintenance import Maintenance
from holdfast.values.checkpoints import Checkpoint, TypedBytes, Write
from holdfast.values.codec import encode_json
from tests.engines.postgres import PostgresHarness, server
from tests.engines.postgres_database import as_keeper, connected, empty_database, generic_plan

pytestmark = pytest.mark.asyncio(loop_scope="session")
VALUE = TypedBytes("json", b"1")


def _step(at: int, thread: str = "t1") -> Checkpoint:
    above = f"c{at - 1:06}" if at else None
    versions = {"log": f"{at}", "fixed": "1"}
    return Checkpoint(thread, "", f"c{at:06}", above, VALUE, VALUE, {}, versions)


async def _steps(store: Checkpoints, first: int, last: int) -> None:
    for at in range(first, last):
        new = {"log": VALUE, "fixed": VALUE} if at == 0 else {"log": VALUE}
        await store.put(_step(at), new_values=new)
        await store.put_writes("t1", "", f"c{at:06}", [Write("k", 0, "log", VALUE)])


async def test_every_method_is_one_round_trip(tmp_path: Path) -> None:
    behind, trips = server(18), RoundTrips()
    listen = tmp_path / f".s.PGSQL.{behind.port}"
    async with (
        empty_database() as url,
        trips.between(listen, behind.folder / listen.name),
    ):
        away = url.replace(str(behind.folder), str(tmp_path))
        engine = await Postgres.open(away, auto_migrate=True, max_connections=1)
        store = Checkpoints(PostgresCheckpoints(engine))

        async def counted(thread: str) -> dict[str, int]:
            write = Write("k", 0, "log", VALUE)
            first, second = _step(0, thread), _step(1, thread)
            new = {"log": VALUE}
            found = {}
            for name, call in (
                ("put", lambda: store.put(first, new_values=new)),
                ("expect", lambda: store.put(second, new_values=new, expected_parent=first.id)),
                ("put_writes", lambda: store.put_writes(thread, "", second.id, [write])),
                ("get", lambda: store.get(thread)),
                ("get by id", lambda: store.get(thread, "", first.id)),
                ("ancestors", lambda: store.ancestors(thread, "", None, ["log"])),
                ("copy_thread", lambda: store.copy_thread(thread, "copy")),
                ("prune", lambda: store.prune([thread])),
                ("delete_runs", lambda: store.delete_runs(["r"])),
                ("delete_threads", lambda: store.delete_threads([thread])),
            ):
                before = trips.count
                await call()
                found[name] = trips.count - before
            return found

        # The first time, the statements are prepared.
        prepared = await counted("t1")
        assert await counted("t2") == dict.fromkeys(prepared, 1)
        await engine.aclose()


async def _rows_read(connection: Any, sql: str, *args: Any) -> int:
    """How many rows of our tables a statement reads, those of functions included."""
    count = (
        "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables "
        "WHERE schemaname = 'holdfast'"
    )
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    async with connection.transaction():
        before = int(await connection.fetchval(count))
        await connection.fetch(sql, *args)
        return int(await connection.fetchval(count)) - before


async def test_a_step_reads_as_many_rows_in_a_thread_of_2000_as_in_one_of_20() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=1)
        store = Checkpoints(PostgresCheckpoints(engine))
        sql = engine_checkpoints._SQL

        async def costs(last: int) -> dict[str, int]:
            async with as_keeper(engine) as connection:
                await connection.execute("ANALYZE")
                put = (
                    *("default", "t1", "", f"c{last:06}", f"c{last - 1:06}", None, "json", b"1"),
                    *("json", b"1", "{}", encode_json({"log": f"{last}", "fixed": "1"}), ["log"]),
                    *([f"{last}"], ["json"], [b"1"], f"c{last - 1:06}", None),
                )
                writes = (["k"], [0], [""], ["log"], ["json"], [b"1"])
                where = ("default", "t1", "")
                old = f"c{last // 2:06}"
                return {
                    "put": await _rows_read(connection, sql["put"], *put),
                    "put_writes": await _rows_read(
                        connection, sql["put_writes"], *where, f"c{last:06}", *writes
                    ),
                    "newest": await _rows_read(connection, engine_checkpoints._NEWEST, *where),
                    "by_id": await _rows_read(connection, engine_checkpoints._BY_ID, *where, old),
                    "ancestors": await _rows_read(
                        connection, engine_checkpoints._ANCESTORS, *where, old, ["log"]
                    ),
                    "ancestors of the newest": await _rows_read(
                        connection, engine_checkpoints._ANCESTORS, *where, None, ["log"]
                    ),
                }

        await _steps(store, 0, 20)
        # A table of 20 rows is one page, which is read faster as a whole: others fill it.
        for thread in ("u1", "u2"):
            for at in range(1000):
                await store.put(_step(at, thread), new_values={"log": VALUE})
                write = [Write("k", 0, "log", VALUE)]
                await store.put_writes(thread, "", f"c{at:06}", write)
        short = await costs(20)
        await _steps(store, 20, 2000)
        long = await costs(2000)
        await engine.aclose()
    assert long == short
    assert max(long.values()) < 20


@pytest.mark.parametrize("name", ["_NEWEST", "_BY_ID"])
async def test_a_read_goes_by_the_whole_key(name: str) -> None:
    async with empty_database() as url, connected(url) as connection:
        await (await Postgres.open(url, auto_migrate=True)).aclose()
        plan = await generic_plan(connection, getattr(engine_checkpoints, name))
    assert "Seq Scan" not in plan
    assert "Index Scan using checkpoint_values_pkey" in plan
    assert "checkpoint_writes_pkey" in plan
    assert "using checkpoints_pkey" in plan


async def test_prune_and_forks_at_once_lose_no_value() -> None:
    harness = PostgresHarness()
    await harness.open()
    store = harness.store("checkpoints")
    await _steps(store, 0, 5)

    async def go_on(at: int) -> None:
        one = _step(at)
        await store.put(replace(one, parent="c000004"), new_values={"log": VALUE})

    await asyncio.gather(*(go_on(at) if at % 2 else store.prune(["t1"]) for at in range(5, 45)))
    newest = await store.get("t1")
    assert newest.id == "c000043"
    assert newest.values == {"log": VALUE, "fixed": VALUE}
    await harness.close()


async def test_writers_to_an_expired_thread_at_once_begin_it_again_together() -> None:
    harness = PostgresHarness()
    await harness.open()
    store = harness.store("checkpoints")
    for turn in range(4):
        begin = 100 * turn
        await store.put(_step(begin), new_values={"log": VALUE}, ttl_seconds=60)
        await harness.elapse(61)
        after = range(begin + 1, begin + 17)
        await asyncio.gather(
            *(store.put(_step(at), new_values={"log": VALUE}, ttl_seconds=60) for at in after)
        )
        found = [one.id async for one in store.list(thread="t1")]
        assert sorted(found) == [_step(at).id for at in after]
    await harness.close()


async def test_maintenance_deletes_expired_threads_with_all_they_have() -> None:
    harness = PostgresHarness()
    await harness.open()
    store = harness.store("checkpoints")
    empty = await harness.raw("checkpoints")
    await store.put(_step(0), new_values={"log": VALUE}, ttl_seconds=60)
    await store.put_writes("t1", "", "c1", [Write("k", 0, "log", VALUE)])
    await harness.elapse(61)
    async with as_keeper(harness.engine) as connection:
        assert await Maintenance(connection).jobs()["expired threads"]() >= 1
    assert await harness.raw("checkpoints") == empty
    await harness.close()
