"""What no suite of the framework asks of a key-value store and a vector store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

import holdfast
from holdfast import State
from holdfast.adapters.langchain import HoldfastKeyValueStore, HoldfastVectorStore
from holdfast.bench.round_trips import RoundTrips
from holdfast.blocking import Portal
from holdfast.errors import ConfigError, InvalidInputError
from holdfast.items import ItemKey
from holdfast.values.ids import new_ref
from tests.engines.postgres import server


class Letters(Embeddings):
    """How often each of four letters is in a text."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Count."""
        return [[text.count(letter) + 0.01 for letter in "abcd"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Count."""
        return self.embed_documents([text])[0]


@pytest_asyncio.fixture(loop_scope="session", params=["memory", "postgres"])
async def own(request: pytest.FixtureRequest, database: str) -> AsyncIterator[State]:
    """A state of each engine, on the loop of the tests."""
    url = database if request.param == "postgres" else "memory:"
    async with holdfast.open(url, tenant=new_ref()) as opened:
        yield opened


async def test_a_search_filters_by_metadata_and_has_scores(own: State) -> None:
    store = HoldfastVectorStore(own, Letters())
    texts = ["aaa", "aab", "bbb", "ccc"]
    metadatas = [{"n": at, "kind": "odd" if at % 2 else "even"} for at in range(4)]
    await store.aadd_texts(texts, metadatas, ids=["0", "1", "2", "3"])
    found = await store.asimilarity_search("a", k=2, filter={"kind": "odd"})
    assert [one.id for one in found] == ["1", "3"]
    assert found[0] == Document(id="1", page_content="aab", metadata=metadatas[1])
    scored = await store.asimilarity_search_with_score("a", k=4)
    assert [document.id for document, _ in scored] == ["0", "1", "2", "3"]
    assert scored[0][1] == pytest.approx(1.0, abs=1e-3)
    [(best, relevance), *_] = await store.asimilarity_search_with_relevance_scores("a", k=1)
    assert (best.id, relevance) == ("0", pytest.approx(1.0, abs=1e-3))
    near = await store.asimilarity_search_by_vector([0.0, 0.0, 1.0, 0.0], k=1)
    assert [one.id for one in near] == ["3"]
    with pytest.raises(InvalidInputError, match=r"filter\.kind\.\$near"):
        await store.asimilarity_search("a", filter={"kind": {"$near": 1}})


async def test_marginal_relevance_prefers_documents_that_differ(own: State) -> None:
    store = HoldfastVectorStore(own, Letters())
    await store.aadd_texts(["aaa", "aa", "a", "abb"], ids=["0", "1", "2", "3"])
    found = await store.amax_marginal_relevance_search("aaaa", k=2, lambda_mult=0.1)
    assert "3" in {one.id for one in found}
    assert len(found) == 2
    assert await store.amax_marginal_relevance_search("a", k=2, filter={"x": 1}) == []


async def test_documents_are_added_all_or_none_and_the_last_of_an_id_counts(own: State) -> None:
    store = HoldfastVectorStore(own, Letters())
    made = await store.aadd_texts(["a", "b", "c"], ids=["x", None, "x"])
    assert made[0] == made[2] == "x"
    assert [one.page_content for one in await store.aget_by_ids(made[:2])] == ["c", "b"]
    for bad in (
        {"texts": ["d", "e"], "metadatas": [{}, {"n": float("nan")}]},
        {"texts": ["d", "e"], "metadatas": [{}]},
        {"texts": ["d", "e"], "ids": ["d"]},
    ):
        with pytest.raises(InvalidInputError):
            await store.aadd_texts(**bad)
    assert len(await store.asimilarity_search("a", k=10)) == 2
    await store.adelete()
    assert await store.asimilarity_search("a", k=10) == []


async def test_a_second_tenant_owner_or_name_sees_nothing(own: State) -> None:
    views = [own, own.for_tenant(new_ref()), own.for_owner("ana"), own.for_owner("bob")]
    pairs = [HoldfastKeyValueStore(view) for view in views]
    pairs.append(HoldfastKeyValueStore(own, name="other"))
    for at, store in enumerate(pairs):
        assert await store.amget(["k"]) == [None]
        await store.amset([("k", at)])
    assert [(await store.amget(["k"]))[0] for store in pairs] == [0, 1, 2, 3, 4]
    await pairs[2].amdelete(["k"])
    assert [(await store.amget(["k"]))[0] for store in pairs] == [0, 1, None, 3, 4]
    documents = [HoldfastVectorStore(view, Letters()) for view in views]
    documents.append(HoldfastVectorStore(own, Letters(), collection="other"))
    for at, vectors in enumerate(documents):
        assert await vectors.asimilarity_search("a") == []
        await vectors.aadd_texts([f"a{at}"], ids=["d"])
    found = [(await vectors.aget_by_ids(["d"]))[0].page_content for vectors in documents]
    assert found == ["a0", "a1", "a2", "a3", "a4"]


async def test_two_writers_at_once_lose_no_pair(own: State) -> None:
    one, other = HoldfastKeyValueStore(own), HoldfastKeyValueStore(own)
    await asyncio.gather(
        *((one, other)[at % 2].amset([(f"k{at}", at), ("shared", at)]) for at in range(30))
    )
    keys = {key async for key in one.ayield_keys(prefix="k")}
    assert keys == {f"k{at}" for at in range(30)}
    assert (await other.amget(["shared"]))[0] in range(30)


async def test_three_threads_and_two_loops_use_one_store(own: State) -> None:
    store, documents = HoldfastKeyValueStore(own), HoldfastVectorStore(own, Letters())

    def turns(name: str) -> None:
        store.mset([(name, name.encode())])
        assert store.mget([name]) == [name.encode()]
        documents.add_texts([name], ids=[name])
        assert [one.id for one in documents.get_by_ids([name])] == [name]

    async def other_loop(name: str) -> None:
        await store.amset([(name, name.encode())])
        await documents.aadd_texts([name], ids=[name])

    with ThreadPoolExecutor(3) as threads:
        works = [
            threads.submit(turns, "a"),
            threads.submit(turns, "b"),
            threads.submit(lambda: asyncio.run(other_loop("c"))),
        ]
        await other_loop("d")
        for work in works:
            await asyncio.wrap_future(work)
    assert sorted([key async for key in store.ayield_keys()]) == ["a", "b", "c", "d"]
    assert len(await documents.asimilarity_search("a", k=10)) == 4
    with pytest.raises(ConfigError, match="its name begins with an a"):
        store.mget(["a"])


async def test_odd_keys_many_keys_and_expiry(own: State) -> None:
    store = HoldfastKeyValueStore(own, ttl_seconds=60)
    odd: list[tuple[str, Any]] = [("", 1), ("a\nb", b"\x00"), ('["x"]', None), ("sha256:", [])]
    await store.amset(odd)
    assert await store.amget([key for key, _ in odd]) == [value for _, value in odd]
    assert sorted([key async for key in store.ayield_keys()]) == sorted(key for key, _ in odd)
    [item] = await own.items.get_many([ItemKey(("langchain", "values", "default"), '[""]')])
    assert item is not None
    assert item.expires_at is not None
    assert (item.expires_at - item.updated_at).total_seconds() == 60
    many = [(f"k{at}", at) for at in range(2100)]
    await store.amset([*many, ("k0", "last")])
    values = await store.amget([key for key, _ in many])
    assert values == ["last", *range(1, 2100)]
    await store.amdelete([key for key, _ in many])
    assert len([key async for key in store.ayield_keys(prefix="k")]) == 0
    with pytest.raises(InvalidInputError, match=r"puts\[1\]\.value"):
        await store.amset([("x", 1), ("y", object())])
    assert await store.amget(["x"]) == [None]


async def test_a_store_is_made_of_texts_and_needs_a_state(own: State) -> None:
    made = await HoldfastVectorStore.afrom_texts(["a"], Letters(), ids=["d"], state=own)
    assert [one.id for one in await made.aget_by_ids(["d"])] == ["d"]
    assert isinstance(made.embeddings, Letters)
    with pytest.raises(InvalidInputError, match="state"):
        HoldfastVectorStore.from_texts(["a"], Letters())
    with Portal.open("memory:") as portal:
        sync = HoldfastVectorStore.from_documents(
            [Document(id="d", page_content="a")], Letters(), state=portal
        )
        assert [one.page_content for one in sync.similarity_search("a")] == ["a"]
        assert [one.id for one in sync.max_marginal_relevance_search("a", k=1)] == ["d"]


async def test_each_call_is_one_round_trip(database: str, tmp_path: Path) -> None:
    behind, trips = server(18), RoundTrips()
    listen = tmp_path / f".s.PGSQL.{behind.port}"
    url = database.replace(str(behind.folder), str(tmp_path))
    async with (
        trips.between(listen, behind.folder / listen.name),
        holdfast.open(url, tenant=new_ref()) as state,
    ):
        pairs, documents = HoldfastKeyValueStore(state), HoldfastVectorStore(state, Letters())

        async def keys() -> list[str]:
            return [key async for key in pairs.ayield_keys()]

        counted: dict[str, int] = {}
        # The first time, the statements are prepared.
        for _ in range(2):
            for name, call in (
                ("mset", lambda: pairs.amset([("a", 1), ("b", 2)])),
                ("mget", lambda: pairs.amget(["a", "b", "c"])),
                ("keys", keys),
                ("mdelete", lambda: pairs.amdelete(["a", "b"])),
                ("add", lambda: documents.aadd_texts(["a", "b"], ids=["1", "2"])),
                ("search", lambda: documents.asimilarity_search("a")),
                ("get", lambda: documents.aget_by_ids(["1"])),
                ("delete", lambda: documents.adelete(["1"])),
            ):
                before = trips.count
                await call()
                counted[name] = trips.count - before
    assert counted == dict.fromkeys(counted, 1)
