"""In sealed mode no file of any server has the bytes of content, before an erasure or after it."""

from __future__ import annotations

import dataclasses

import pytest

import holdfast
from holdfast import ANY_OWNER, Entity, Event
from holdfast.engines.key_providers.key_ring import KeyRing
from holdfast.errors import SealedError
from holdfast.items import ItemPut
from holdfast.values.codec import decode_json
from tests.engines.postgres_database import connected
from tests.erasure.residue import STORES, WRITER, Servers, canary, fill_content

pytestmark = pytest.mark.asyncio(loop_scope="session")

# The owner of an API key is an id, which is not sealed.
SEALED = tuple(one for one in STORES if one != "api key")
RING = KeyRing({"k1": bytes(range(32))}, name="tests")


async def _bodies(servers: Servers) -> list[str]:
    async with connected(servers.postgres.url()) as connection:
        rows = await connection.fetch(
            "SELECT e.body FROM holdfast.task_events e JOIN holdfast.tasks t ON t.id = e.task_id "
            "WHERE t.tenant = 'default' AND e.kind = 'message' ORDER BY t.owner"
        )
    return [row[0] for row in rows]


async def test_sealed_content_is_in_no_file_and_its_key_can_be_destroyed(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.wiring.erasure.KEPT_SECONDS", 0)
    words, others, plain = ({store: canary() for store in SEALED} for _ in range(3))
    sealed = dataclasses.replace(servers.settings, seal_vectors="plain")
    async with holdfast.open(settings=sealed, seal=RING) as state:
        ana, ben = state.for_owner("ana"), state.for_owner("ben")
        await fill_content(ana, words)
        await fill_content(ben, others)
        await state.ops.index_pending()
        assert await servers.found(words | others) == {}
        # The control: what is written unsealed is found, in the same files.
        async with holdfast.open(settings=servers.settings, tenant="plain") as unsealed:
            await fill_content(unsealed, plain)
            assert set(await servers.found(plain)) == set(SEALED)
        # It is there, for whoever has the keys.
        assert (await ana.short_term.get_state("s1")) == {"who": words["state"]}
        [task] = (await state.tasks.list(owner="ana", first_message=True)).tasks
        assert task.first_message is not None
        assert task.first_message.text == words["task"]
        copied = await _bodies(servers)

        report = await state.erase(subject="ana")

        assert report.receipt is not None
        assert await servers.found(words | others) == {}
        assert await state.tasks.get(task.id, owner=ANY_OWNER) is None
        assert (await ben.short_term.get_state("s1")) == {"who": others["state"]}
    # A copy of the rows from before the erasure opens for nobody, though the KEK is still there.
    [hers, his] = [decode_json(body)["content"][0]["text"] for body in copied]
    async with holdfast.open(settings=sealed, seal=RING) as state:
        sealing = state._connections.seal("default")
        await sealing.opener(his)
        with pytest.raises(SealedError, match="destroyed"):
            await sealing.opener(hers)


async def test_a_session_about_a_subject_is_in_no_file_and_its_key_can_be_destroyed(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.wiring.erasure.KEPT_SECONDS", 0)
    words = {store: canary() for store in ("event", "state", "metadata", "item", "entity")}
    async with holdfast.open(settings=servers.settings, seal=RING) as state:
        ben = state.for_owner("ben")
        about = {"m": words["metadata"]}
        await ben.episodes.start_session(WRITER, "s1", metadata=about, subject="ana")
        await ben.episodes.append([Event(WRITER, "s1", "note", {"of": words["event"]})])
        await ben.short_term.set_state("s1", {"who": words["state"]})
        item = ItemPut(("notes",), "k1", {"by": words["item"]}, subject="ana")
        await ben.items.put_many([item])
        await ben.graph.add_entities([Entity("p", {"name": words["entity"]}, "e1", "ana")])
        if servers.valkey is not None:
            await state.ops.hybrid.consolidator.drain()
        await state.ops.index_pending()
        assert (await ben.short_term.get_state("s1")) == {"who": words["state"]}
        assert await servers.found(words) == {}
        async with connected(servers.postgres.url()) as connection:
            copied = await connection.fetchval("SELECT body FROM holdfast.events")
            value = await connection.fetchval("SELECT value FROM holdfast.items")
        report = await state.erase(subject="ana")
        assert report.counts == {"sessions": 1, "states": 1, "entities": 1, "items": 1}
        assert await servers.found(words) == {}
    async with holdfast.open(settings=servers.settings, seal=RING) as state:
        sealing = state._connections.seal("default")
        for body in (copied, value):
            with pytest.raises(SealedError, match="destroyed"):
                await sealing.opener(body)
