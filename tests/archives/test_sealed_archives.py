"""Archives of sealed tenants: values stay sealed, and their data keys are wrapped."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

import holdfast
from holdfast import ChatMessage, Entity, Settings, State
from holdfast.checkpoints import Checkpoint, TypedBytes
from holdfast.engines.key_providers.key_ring import KeyRing
from holdfast.errors import CodecError, InvalidInputError, NotSupportedError, SealedError
from holdfast.items import ItemKey, ItemPut
from holdfast.spi.archive.records import DataKeyRecord
from holdfast.spi.key_provider import KeyProvider
from tests.archives.test_archives import ENGINES, files
from tests.archives.test_killed import run
from tests.engines.postgres_database import empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
AGENT, SESSION = "writer", "s1"
OURS, THEIRS = bytes(range(32)), bytes(range(1, 33))
RING = KeyRing({"ours": OURS}, name="ours")
NEXT = KeyRing({"theirs": THEIRS}, name="theirs")
DATA_KEYS = "sealing/data_keys-000001.jsonl"


@asynccontextmanager
async def _opened(
    engine: str, seal: KeyProvider | None = RING, tenant: str = "acme"
) -> AsyncIterator[State]:
    if engine == "memory":
        async with holdfast.open("memory:", tenant=tenant, seal=seal) as state:
            yield state
        return
    async with (
        empty_database() as url,
        holdfast.open(url, tenant=tenant, seal=seal, settings=_settings()) as state,
    ):
        yield state


def _settings(**more: Any) -> Settings:
    return Settings(seal_vectors="plain", **more)


async def _fill(state: State) -> dict[str, Any]:
    """Write to every store that is sealed, for an owner, and about somebody."""
    ana = state.for_owner("ana")
    await ana.episodes.start_session(AGENT, SESSION, metadata={"by": "whisper"}, subject="ben")
    await ana.history.append(AGENT, ChatMessage.user("a whisper of tides"), session_id=SESSION)
    await ana.short_term.set_state(SESSION, {"said": "whisper"})
    await state.ops.rotate_dek()
    await ana.long_term.save(AGENT, "the whisper sails", topic="whisper")
    await ana.graph.add_entities([Entity("person", {"name": "whisper"}, id="e1")])
    await ana.items.put_many([ItemPut(("notes",), "k1", {"by": "whisper"})])
    await ana.boards.create_task_list("c1", ["whisper"], agent_id=AGENT)
    empty = TypedBytes("json", b"{}")
    await ana.checkpoints.put(
        Checkpoint("t1", "", "1", None, empty, empty, versions={"x": "1"}),
        new_values={"x": TypedBytes("text", b"whisper")},
    )
    await ana.channel("news").publish({"by": "whisper"})
    await ana.schedules.create("daily", "0 9 * * *", agent=AGENT, message="whisper")
    task = await ana.tasks.submit(AGENT, ChatMessage.user("whisper"))
    ref = await ana.blobs.store(b"whisper" * 20_000, content_type="text/whisper")
    return {"task": task.id, "ref": ref}


async def _seen(state: State, ids: dict[str, Any]) -> list[Any]:
    """Read all of it again."""
    ana = state.for_owner("ana")
    session = await ana.episodes.get_session(SESSION)
    task = await ana.tasks.get(ids["task"])
    board = await ana.boards.get_by_conversation("c1")
    thread = await ana.checkpoints.get("t1")
    schedule = await ana.schedules.get("daily")
    assert session is not None
    assert task is not None
    assert board is not None
    assert thread is not None
    assert schedule is not None
    return [
        *(session.metadata, session.subject),
        *[one.text for one in await ana.history.get_messages(AGENT, session_id=SESSION)],
        *[hit.event.payload for hit in await ana.episodes.recall(AGENT, "tides")],
        await ana.short_term.get_state(SESSION),
        *[one.content for one in await ana.long_term.search(AGENT, "sails", topic="whisper")],
        *[one.properties for one in await ana.graph.find_entities(["e1"])],
        *[one and one.value for one in await ana.items.get_many([ItemKey(("notes",), "k1")])],
        [card.title for card in board.tasks],
        thread.values,
        [one.event for one in await ana.channel("news").read()],
        schedule.message.text,
        [one.text for one in task.messages],
        await ana.blobs.resolve(ids["ref"]),
    ]


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("source", ENGINES)
async def test_a_sealed_archive_stays_sealed_and_opens_for_its_recipient(
    source: str, target: str, tmp_path: Path
) -> None:
    async with _opened(source) as state, _opened(target, NEXT) as other:
        ids = await _fill(state)
        was = await _seen(state, ids)
        before = await state.ops.archives.export(tmp_path / "a", recipient=NEXT)
        assert before.kinds["data_keys"][0] >= 4
        held = files(tmp_path / "a")
        assert not [name for name, data in held.items() if b"whisper" in data]
        # Whom it was not wrapped for cannot load it, and nothing is loaded.
        async with _opened("memory") as stranger:
            with pytest.raises(SealedError, match="'theirs' is missing"):
                await stranger.ops.archives.load(tmp_path / "a")
            assert (await stranger.erase(subject="ana", dry_run=True)).counts == {}
        await other.ops.archives.load(tmp_path / "a")
        assert await _seen(other, ids) == was
        # It is the same archive again, but for the wrapping of a third.
        again = await other.ops.archives.export(tmp_path / "b")
        assert again.kinds == before.kinds
        assert files(tmp_path / "b") == held
        # Both can go on, and a person can be erased.
        await other.for_owner("ana").short_term.set_state("new", {"step": 1})
        report = await other.erase(session=SESSION, subject="ana")
        assert report.counts["sessions"] == 1


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("source", ENGINES)
async def test_a_copy_of_a_sealed_tenant_is_sealed_for_the_target(
    source: str, target: str, tmp_path: Path
) -> None:
    async with _opened(source) as state, _opened(target, NEXT) as other:
        ids = await _fill(state)
        copied = await state.ops.archives.copy_to(other)
        assert await _seen(other, ids) == await _seen(state, ids)
        before = await state.ops.archives.export(tmp_path / "a")
        after = await other.ops.archives.export(tmp_path / "b")
        assert copied.kinds == before.kinds
        assert files(tmp_path / "a").keys() == files(tmp_path / "b").keys()
        assert {kind for kind in after.kinds if after.kinds[kind] != before.kinds[kind]} == {
            "data_keys"
        }


async def test_what_would_not_open_or_not_be_sealed_is_refused(tmp_path: Path) -> None:
    async with _opened("memory") as state, _opened("memory", None) as plain:
        await state.for_owner("ana").short_term.set_state("s1", {"step": 1})
        await plain.short_term.set_state("s1", {"step": 1})
        await state.ops.archives.export(tmp_path / "sealed")
        await plain.ops.archives.export(tmp_path / "plain")
        assert "data_keys" not in (await plain.ops.archives.export(tmp_path / "plain")).kinds
        async with _opened("memory", None) as other:
            with pytest.raises(SealedError, match="opened without keys"):
                await other.ops.archives.load(tmp_path / "sealed")
            with pytest.raises(SealedError, match="opened without keys"):
                await state.ops.archives.copy_to(other)
        async with _opened("memory", tenant="globex") as other:
            with pytest.raises(NotSupportedError, match="only in tenant 'acme'"):
                await other.ops.archives.load(tmp_path / "sealed", rename=True)
            with pytest.raises(NotSupportedError, match="only in tenant 'acme'"):
                await state.ops.archives.copy_to(other)
        async with _opened("memory") as other:
            with pytest.raises(NotSupportedError, match="would stay unsealed"):
                await other.ops.archives.load(tmp_path / "plain")
            with pytest.raises(NotSupportedError, match="would stay unsealed"):
                await plain.ops.archives.copy_to(other)
            # A data key of another row does not open.
            lines = (tmp_path / "sealed" / DATA_KEYS).read_bytes()
            assert b'"subject":"ana"' in lines
            await other.ops.archives.load(tmp_path / "sealed")
            assert await other.for_owner("ana").short_term.get_state("s1") == {"step": 1}
    async with _opened("memory") as wrapped:
        await wrapped.short_term.set_state("s1", {"step": 1})
        wrapped._connections.provider = None
        with pytest.raises(InvalidInputError, match="needs the keys of this tenant"):
            await wrapped.ops.archives.export(tmp_path / "c", recipient=NEXT)
        # Without one it needs no key.
        assert "data_keys" in (await wrapped.ops.archives.export(tmp_path / "d")).kinds


async def test_a_data_key_under_the_name_of_somebody_else_is_refused() -> None:
    async with _opened("memory") as state:
        await state.for_owner("ana").short_term.set_state("s1", {"step": 1})
        storage = state.ops.archives._storage()
        async with storage.snapshot() as snapshot:
            [*records] = [one async for one in snapshot.records("data_keys")]
        keys = state.ops.archives._keys()
        for one in records:
            await keys.check(one)
            with pytest.raises(SealedError, match="the row was changed"):
                await keys.check(msgspec.structs.replace(one, subject="ben"))


async def test_data_keys_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    async with _opened("memory") as state:
        for owner in ("ana", "ben"):
            await state.for_owner(owner).short_term.set_state("s1", {"step": 1})
        await state.ops.rotate_dek()
        storage = state.ops.archives._storage()
        async with storage.snapshot() as snapshot:
            records = [cast("DataKeyRecord", one) async for one in snapshot.records("data_keys")]
        of = {(one.subject, one.replaced): one for one in records}
        ana, hers, bens = of["ana", False], of["ana", True], of["ben", True]
        change = msgspec.structs.replace
        forged = {
            "the first key of another": [change(ana, first_number=bens.key_number), hers, bens],
            "a first key that is not there": [change(ana, first_number=7), hers],
            "a first key that names another": [ana, change(hers, first_number=7)],
            "two current keys": [ana, change(hers, replaced=False)],
            "none": [hers],
        }
        for name, some in {"as they are": records, **forged}.items():
            keys = state.ops.archives._keys()
            for one in some:
                await keys.check(one)
            if name == "as they are":
                keys.check_first_keys()
            else:
                with pytest.raises(CodecError, match="export it again"):
                    keys.check_first_keys()
        # An import checks them before it loads anything.
        await state.ops.archives.export(tmp_path / "a")
        lines = tmp_path / "a" / DATA_KEYS
        text = lines.read_bytes()
        number = f'"first_number":{hers.key_number}'.encode()
        assert number in text
        forge(tmp_path / "a", text.replace(number, f'"first_number":{bens.key_number}'.encode()))
    async with _opened("memory") as other:
        with pytest.raises(CodecError, match="does not fit"):
            await other.ops.archives.load(tmp_path / "a")
        assert (await other.erase(subject="ana", dry_run=True)).counts == {}


def forge(folder: Path, lines: bytes) -> None:
    """Replace the data keys of an archive, with the digests of the new ones."""
    (folder / DATA_KEYS).write_bytes(lines)
    manifest = msgspec.json.decode((folder / "manifest.json").read_bytes())
    entry, digest = manifest["kinds"]["data_keys"], hashlib.sha256(lines).hexdigest()
    entry["segments"] = [{"records": entry["records"], "bytes": len(lines), "sha256": digest}]
    entry["sha256"] = digest
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize("source", ENGINES)
async def test_a_tenant_with_api_keys_alone_is_neither_sealed_nor_not(
    source: str, target: str, tmp_path: Path
) -> None:
    async with _opened(source) as state:
        made = await state.keys.create("ana")
        await state.ops.archives.export(tmp_path / "a")
        async with _opened(target) as other:
            await other.ops.archives.load(tmp_path / "a")
            assert await other.keys.verify(made.text) is not None
        async with _opened(target) as other:
            await state.ops.archives.copy_to(other)
            assert await other.keys.verify(made.text) is not None


async def test_a_sealed_archive_whose_export_import_or_copy_is_killed_is_exact(
    tmp_path: Path,
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"ours:{OURS.hex()}\n")
    keys.chmod(0o600)
    seal = f"file:{keys}"
    async with empty_database() as url, empty_database() as target, empty_database() as third:
        async with holdfast.open(url, tenant="acme", seal=RING) as state:
            ids = await _fill(state)
            was = await _seen(state, ids)
        for step in (1, 3, 12):
            assert await run("export", url, tmp_path / "a", step, seal) == -signal.SIGKILL
        assert await run("export", url, tmp_path / "a", 0, seal) == 0
        for step in (1, 16, 20, 25):
            assert await run("import", target, tmp_path / "a", step, seal) == -signal.SIGKILL
        assert await run("import", target, tmp_path / "a", 0, seal) == 0
        for step in (1, 2, 10):
            assert await run("copy", url, third, step, seal) == -signal.SIGKILL
        assert await run("copy", url, third, 0, seal) == 0
        for place in (target, third):
            async with holdfast.open(place, tenant="acme", seal=RING) as other:
                assert await _seen(other, ids) == was
                await other.ops.archives.export(tmp_path / place.rpartition("/")[2][:9])
