"""What no suite of the framework asks of a store."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

WHY = "LangGraph is not installed here: make test-adapters"
base = pytest.importorskip("langgraph.store.base", reason=WHY)

import holdfast  # noqa: E402 - after the skip
from holdfast import State  # noqa: E402
from holdfast.adapters.langgraph import HoldfastStore  # noqa: E402
from holdfast.bench.round_trips import RoundTrips  # noqa: E402
from holdfast.blocking import Portal  # noqa: E402
from holdfast.errors import ConfigError, InvalidInputError  # noqa: E402
from holdfast.items import Item, ItemKey, ItemPut  # noqa: E402
from holdfast.values.ids import new_ref  # noqa: E402
from tests.engines.postgres import server  # noqa: E402

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = ("users", "ana")


def _letters(texts: Any) -> list[list[float]]:
    """How often each of four letters is in a text."""
    return [[float(text.count(letter)) for letter in "abcd"] for text in texts]


def _index(**more: Any) -> Any:
    return {"embed": _letters, "dims": 4, "fields": ["text"]} | more


async def _stored(state: State, key: str) -> Item:
    [found] = await state.items.get_many([ItemKey(("langgraph", *ANA), key)])
    assert found is not None
    return found


async def test_a_graph_remembers_in_the_store_that_it_was_compiled_with(state: State) -> None:
    graphs = pytest.importorskip("langgraph.graph", reason=WHY)
    config = pytest.importorskip("langgraph.config", reason=WHY)
    store = HoldfastStore(state, index=_index())

    async def node(asked: Any) -> Any:
        store = config.get_store()
        await store.aput(ANA, "n1", {"text": asked["log"]})
        [found] = await store.asearch(ANA, query="abba")
        return {"log": f"{found.key}: {found.value['text']}"}

    builder = graphs.StateGraph(dict)
    builder.add_node("node", node)
    builder.add_edge(graphs.START, "node")
    done = await builder.compile(store=store).ainvoke({"log": "a cab"})
    assert done == {"log": "n1: a cab"}
    assert (await _stored(state, "n1")).value == {"text": "a cab"}


async def test_reads_of_a_batch_see_what_was_there_before_and_the_last_put_of_a_key_counts(
    state: State,
) -> None:
    store = HoldfastStore(state)
    await store.aput(ANA, "a", {"n": 1})
    got = await store.abatch(
        [
            base.PutOp(ANA, "a", {"n": 2}),
            base.GetOp(ANA, "a"),
            base.PutOp(ANA, "a", {"n": 3}),
            base.PutOp(ANA, "b", {"n": 4}),
            base.SearchOp(("users",)),
            base.PutOp(ANA, "b", None),
            base.ListNamespacesOp(),
            base.GetOp(ANA, "a", refresh_ttl=None),
            base.GetOp((), "a"),
        ]
    )
    assert [got[at] for at in (0, 2, 3, 5, 8)] == [None] * 5
    assert [got[1].value, got[7].value] == [{"n": 1}, {"n": 1}]
    assert [one.value for one in got[4]] == [{"n": 1}]
    assert got[6] == [ANA]
    assert [one.value for one in await store.asearch(())] == [{"n": 3}]


async def test_the_puts_of_a_batch_are_done_all_or_none(state: State) -> None:
    store = HoldfastStore(state)
    await store.aput(ANA, "a", {"n": 1})
    for bad in ({"x": float("nan")}, {"x": 2**63}, {"x": (1,)}, {"x": {1: 2}}, [1]):
        with pytest.raises(InvalidInputError, match=r"puts\[2\]\.value"):
            await store.abatch(
                [
                    base.PutOp(ANA, "a", None),
                    base.PutOp(ANA, "b", {"n": 2}),
                    base.PutOp(ANA, "c", bad),
                ]
            )
    assert [one.key for one in await store.asearch(())] == ["a"]
    with pytest.raises(InvalidInputError, match="unknown operation"):
        await store.abatch([base.PutOp(ANA, "a", None), "put"])
    assert [one.key for one in await store.asearch(())] == ["a"]


async def test_two_writers_at_once_lose_no_item_and_created_at_stays(state: State) -> None:
    one, other = HoldfastStore(state), HoldfastStore(state)
    await one.aput(ANA, "shared", {"by": "first"})
    first = await one.aget(ANA, "shared")
    await asyncio.gather(
        *(
            (one, other)[at % 2].abatch(
                [base.PutOp(ANA, f"k{at}", {"n": at}), base.PutOp(ANA, "shared", {"by": at})]
            )
            for at in range(40)
        )
    )
    found = {item.key: item.value for item in await one.asearch(ANA, limit=100)}
    last = found.pop("shared")
    assert found == {f"k{at}": {"n": at} for at in range(40)}
    assert last["by"] in range(40)
    again = await other.aget(ANA, "shared")
    assert again.created_at == first.created_at
    assert again.updated_at > first.updated_at


async def test_a_second_tenant_and_a_second_owner_with_the_same_ids_see_nothing(
    state: State,
) -> None:
    views = [state, state.for_tenant(new_ref()), state.for_owner("ana"), state.for_owner("bob")]
    stores = [HoldfastStore(view, index=_index()) for view in views]
    for at, store in enumerate(stores):
        assert await store.aget(ANA, "k") is None
        assert await store.asearch((), query="a") == []
        assert await store.alist_namespaces() == []
        await store.aput(ANA, "k", {"text": "a", "n": at})
    for at, store in enumerate(stores):
        assert (await store.aget(ANA, "k")).value["n"] == at
        assert [one.value["n"] for one in await store.asearch((), query="a")] == [at]
    await stores[2].adelete(ANA, "k")
    left = [await store.aget(ANA, "k") is not None for store in stores]
    assert left == [True, True, False, True]


def _sync_turns(store: HoldfastStore, name: str) -> None:
    for at in range(5):
        store.put(("turns", name), f"k{at}", {"text": name, "n": at})
        assert store.get(("turns", name), f"k{at}").value["n"] == at
    assert len(store.search(("turns", name), query="a")) == 5


async def _turns(store: HoldfastStore, name: str) -> None:
    for at in range(5):
        await store.aput(("turns", name), f"k{at}", {"text": name, "n": at})
        assert (await store.aget(("turns", name), f"k{at}")).value["n"] == at
    assert len(await store.asearch(("turns", name), query="a")) == 5


async def test_three_threads_and_two_loops_use_one_store(state: State) -> None:
    store = HoldfastStore(state, index=_index())
    with ThreadPoolExecutor(3) as threads:
        works = [
            threads.submit(_sync_turns, store, "a"),
            threads.submit(_sync_turns, store, "b"),
            threads.submit(lambda: asyncio.run(_turns(store, "c"))),
        ]
        await _turns(store, "d")
        for work in works:
            await asyncio.wrap_future(work)
    assert await store.alist_namespaces() == [("turns", name) for name in "abcd"]
    assert len(await store.asearch(("turns",), limit=100)) == 20


async def test_a_sync_call_on_the_states_own_loop_names_the_way_out(state: State) -> None:
    with pytest.raises(ConfigError, match="its name begins with an a"):
        HoldfastStore(state).put(ANA, "a", {})
    with Portal.open("memory:") as portal:
        store = HoldfastStore(portal)
        # As in a notebook.
        store.put(ANA, "a", {"n": 1})
        assert store.get(ANA, "a").value == {"n": 1}


async def test_kill_9_between_two_calls_loses_nothing_that_was_acknowledged(database: str) -> None:
    tenant = new_ref()
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.adapters.langgraph.store_worker", database, tenant),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert worker.stdout is not None
    assert await worker.stdout.readline() == b"one is stored\n"
    os.kill(worker.pid, signal.SIGKILL)
    await worker.wait()
    async with holdfast.open(database, tenant=tenant) as state:
        store = HoldfastStore(state)
        assert [one.key for one in await store.asearch(ANA)] == ["first"]
        await store.aput(ANA, "first", {"n": 2})
        await store.aput(ANA, "second", {"n": 3})
        found = {one.key: one.value for one in await store.asearch(ANA)}
    assert found == {"first": {"n": 2}, "second": {"n": 3}}


async def test_a_batch_is_one_round_trip_for_its_gets_one_for_each_search_and_one_for_its_puts(
    database: str, tmp_path: Path
) -> None:
    behind, trips = server(18), RoundTrips()
    listen = tmp_path / f".s.PGSQL.{behind.port}"
    url = database.replace(str(behind.folder), str(tmp_path))
    async with (
        trips.between(listen, behind.folder / listen.name),
        holdfast.open(url, tenant=new_ref()) as state,
    ):
        store = HoldfastStore(state, index=_index())
        batch = [
            *(base.GetOp(ANA, f"k{at}") for at in range(5)),
            *(base.PutOp(ANA, f"k{at}", {"text": "a" * at}) for at in range(5)),
            base.PutOp(("users", "ben"), "k", None),
            base.SearchOp(ANA, query="a", filter={"text": "aa"}),
            base.ListNamespacesOp(),
        ]
        counted: dict[str, int] = {}
        # The first time, the statements are prepared.
        for _ in range(2):
            for name, call in (
                ("put", lambda: store.aput(ANA, "k", {"text": "abc"})),
                ("get", lambda: store.aget(ANA, "k")),
                ("search", lambda: store.asearch(ANA, query="b")),
                ("namespaces", lambda: store.alist_namespaces(prefix=("users", "*"))),
                ("delete", lambda: store.adelete(ANA, "k")),
                ("batch", lambda: store.abatch(batch)),
            ):
                before = trips.count
                await call()
                counted[name] = trips.count - before
    assert counted == {
        "put": 1,
        "get": 1,
        "search": 1,
        "namespaces": 1,
        "delete": 1,
        "batch": 4,
    }


async def test_ttl_is_in_minutes_and_reads_refresh_it_unless_told_not_to(state: State) -> None:
    store = HoldfastStore(state, ttl={"default_ttl": 2, "refresh_on_read": True})

    async def left(key: str) -> float:
        item = await _stored(state, key)
        assert item.expires_at is not None
        return (item.expires_at - item.updated_at).total_seconds()

    await store.aput(ANA, "default", {"n": 1})
    await store.aput(ANA, "short", {"n": 1}, ttl=0.5)
    await store.aput(ANA, "forever", {"n": 1}, ttl=None)
    assert (await left("default"), await left("short")) == (120, 30)
    assert (await _stored(state, "forever")).expires_at is None
    for where in ((ANA, "default"), (ANA,)):
        read: Any = store.aget if len(where) == 2 else store.asearch
        before = await left("default")
        await read(*where, refresh_ttl=False)
        assert await left("default") == before
        await read(*where)
        assert await left("default") > before
    still = HoldfastStore(state, ttl={"refresh_on_read": False})
    before = await left("short")
    await still.aget(ANA, "short")
    assert await left("short") == before
    for bad in (0, -1):
        with pytest.raises(InvalidInputError, match="ttl_seconds"):
            await store.aput(ANA, "x", {}, ttl=bad)


async def test_an_item_is_found_by_the_best_of_its_texts(state: State) -> None:
    store = HoldfastStore(state, index=_index(fields=["text", "tags[*]"]))
    await store.aput(ANA, "a", {"text": "bbb", "tags": ["c", "a"]})
    await store.aput(ANA, "b", {"text": "ab"})
    await store.aput(ANA, "none", {"text": "a"}, index=False)
    await store.aput(ANA, "zero", {"text": "xyz"})
    await store.aput(ANA, "other", {"text": "b", "title": "a"}, index=["title"])
    found = await store.asearch(ANA, query="aaa")
    scores = {one.key: one.score for one in found}
    assert [one.key for one in found][:2] == ["other", "a"]
    assert scores["a"] == scores["other"] == pytest.approx(1.0)
    assert scores["b"] == pytest.approx(2**-0.5)
    assert [scores["none"], scores["zero"]] == [None, None]
    # A query without a direction, and a store without an index, do not rank.
    assert {one.score for one in await store.asearch(ANA, query="xyz")} == {None}
    plain = HoldfastStore(state)
    assert {one.score for one in await plain.asearch(ANA, query="aaa")} == {None}
    await store.aput(ANA, "a", {"text": "c"})
    again = {one.key: one.score for one in await store.asearch(ANA, query="aaa")}
    assert again["a"] == pytest.approx(0.0)


async def test_each_text_of_a_batch_is_embedded_once(state: State) -> None:
    asked: list[str] = []

    async def embed(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return _letters(texts)

    store = HoldfastStore(state, index=_index(embed=embed))
    same = [base.PutOp(ANA, f"k{at}", {"text": "same"}) for at in range(3)]
    await store.abatch([*same, base.PutOp(ANA, "k0", {"text": "last"})])
    assert sorted(asked) == ["last", "same"]


async def test_an_embedder_that_fails_leaves_nothing_written(state: State) -> None:
    def fails(_texts: Any) -> Any:
        raise RuntimeError("no model")

    for embed, error in (
        (fails, RuntimeError),
        (lambda texts: _letters(texts)[:-1], InvalidInputError),
        (lambda texts: [[1.0] for _ in texts], InvalidInputError),
        (lambda texts: [[float("nan")] * 4 for _ in texts], InvalidInputError),
    ):
        store = HoldfastStore(state, index=_index(embed=embed))
        with pytest.raises(error):
            await store.aput(ANA, "a", {"text": "a"})
        with pytest.raises(error):
            await asyncio.to_thread(store.batch, [base.PutOp(ANA, "a", {"text": "a"})])
    assert await HoldfastStore(state).asearch(()) == []


async def test_odd_labels_and_keys_come_back_as_they_were(state: State) -> None:
    store = HoldfastStore(state)
    odd = ["a\nb", '["x"]', "holdfast-owner:3:ana", "sha256:x", "ß" * 250, "*", "a/b", "[", " "]
    for name in odd:
        await store.aput(("odd", name), name, {"name": name})
        found = await store.aget(("odd", name), name)
        assert (found.namespace, found.key, found.value) == (("odd", name), name, {"name": name})
    await store.aput(("odd",), "", {"name": ""})
    assert (await store.aget(("odd",), "")).value == {"name": ""}
    assert len(await store.asearch(("odd",), limit=100)) == len(odd) + 1
    listed = await store.alist_namespaces(prefix=("odd", "*"))
    assert sorted(listed) == sorted(("odd", name) for name in odd)
    for name in odd[:4]:
        assert await store.alist_namespaces(suffix=(name,)) == [("odd", name)]
    with pytest.raises(InvalidInputError, match="at most 512 bytes"):
        await store.aput(("odd",), "x" * 513, {})


async def test_what_others_keep_as_items_is_not_seen(state: State) -> None:
    store = HoldfastStore(state)
    await state.items.put_many([ItemPut(("mcp", "default"), "head", {"n": 1})])
    await store.aput(ANA, "k", {})
    assert [one.namespace for one in await store.asearch(())] == [ANA]
    assert await store.alist_namespaces() == [ANA]
    assert await store.alist_namespaces(max_depth=1) == [ANA[:1]]
    assert await store.alist_namespaces(suffix=("*", *ANA)) == []
    assert await store.aget(("mcp", "default"), "head") is None


async def test_several_conditions_on_namespaces_must_all_hold(state: State) -> None:
    store = HoldfastStore(state)
    for path in (("a", "b", "c"), ("a", "x", "c"), ("b", "b", "c"), ("a", "b")):
        await store.aput(path, "k", {})

    async def listed(*conditions: tuple[str, tuple[str, ...]]) -> Any:
        paths = tuple(base.MatchCondition(kind, path) for kind, path in conditions)
        return (await store.abatch([base.ListNamespacesOp(paths)]))[0]

    assert await listed(("prefix", ("a",)), ("prefix", ("*", "b"))) == [("a", "b"), ("a", "b", "c")]
    assert await listed(("suffix", ("c",)), ("suffix", ("b", "*")), ("prefix", ("a",))) == [
        ("a", "b", "c")
    ]
    assert await listed(("prefix", ("a",)), ("prefix", ("b",))) == []
