"""Data keys: made once, kept for a minute, bound to their row, wrapped again after a rotation."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import cast

import pytest

import holdfast
from holdfast import ChatMessage, Settings, State
from holdfast.engines.inmemory.data_keys import InMemoryDataKeys
from holdfast.engines.inmemory.engine import InMemory
from holdfast.engines.key_providers.key_ring import KeyRing, ring_of_file, ring_of_text
from holdfast.engines.postgres.data_keys import PostgresDataKeys
from holdfast.engines.postgres.engine import Postgres
from holdfast.errors import ConfigError, InvalidInputError, SealedError
from holdfast.sealing.cipher import Box, Place, bound_to, seal
from holdfast.sealing.data_keys import KEPT_SECONDS, DataKeys
from holdfast.values.failpoints import failpoint
from holdfast.values.owners import owned_id
from tests.engines.postgres_database import connected, empty_database
from tests.sealing.conftest import RING
from tests.sealing.conftest import Place as World

pytestmark = pytest.mark.asyncio(loop_scope="session")

AGENT = "writer"
OLD, NEW = bytes(range(32)), bytes(range(1, 33))


async def test_of_many_who_make_the_key_of_a_subject_the_first_one_counts() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url, auto_migrate=True, max_connections=8)
        makers = [DataKeys(PostgresDataKeys(engine), RING, tenant="default") for _ in range(8)]
        found = await asyncio.gather(*(one.of_subject("ana") for one in makers))
        await engine.aclose()
    assert len({one.secret for one in found}) == 1


async def test_a_key_is_kept_for_a_minute_and_no_longer() -> None:
    engine, now = InMemory(), [0.0]
    storage = InMemoryDataKeys(engine)
    keys = DataKeys(storage, RING, tenant="default", clock=lambda: now[0])
    key = await keys.of_subject("ana")
    storage.shred(lambda _subject: True)
    now[0] = KEPT_SECONDS - 1
    assert await keys.load([key.number]) == {key.number: key}
    now[0] = KEPT_SECONDS
    with pytest.raises(SealedError, match="destroyed"):
        await keys.load([key.number])
    assert (await keys.of_subject("ana")).number != key.number


async def test_a_wrapped_key_cannot_be_moved_to_another_subject_or_tenant() -> None:
    engine = InMemory()
    acme, globex = (
        InMemoryDataKeys(engine, tenant="acme"),
        InMemoryDataKeys(engine, tenant="globex"),
    )
    await DataKeys(acme, RING, tenant="acme").of_subject("ana")
    [stored] = await acme.page(0, 10)
    await globex.add(stored)
    with pytest.raises(SealedError, match="the row was changed"):
        await DataKeys(globex, RING, tenant="globex").of_subject("ana")


async def test_a_sealed_value_opens_at_its_place_only() -> None:
    key = await DataKeys(InMemoryDataKeys(InMemory()), RING, tenant="acme").of_subject("ana")
    bound = bound_to("acme", Place("state", "s1", "step"))
    box = Box.of(seal(key, b"hello", bound, again=True))
    assert box.open(key, bound) == b"hello"
    for tenant, place in (
        ("globex", Place("state", "s1", "step")),
        ("acme", Place("item", "s1", "step")),
        ("acme", Place("state", "s2", "step")),
        ("acme", Place("state", "s1", "other")),
    ):
        with pytest.raises(SealedError, match="another record"):
            box.open(key, bound_to(tenant, place))
    with pytest.raises(SealedError, match="damaged"):
        Box.of(b"\x02" + bytes(40))
    with pytest.raises(SealedError, match="base64"):
        Box.of_text("no box!")


async def test_a_row_that_was_moved_by_hand_does_not_open() -> None:
    settings = Settings(auto_migrate=True)
    async with (
        empty_database() as url,
        holdfast.open(url, settings=settings, seal=RING) as state,
        connected(url) as connection,
    ):
        await state.for_owner("ana").short_term.set_state("s1", {"a": 1})
        await state.for_owner("ben").short_term.set_state("s1", {"b": 2})
        await state.short_term.set_state("s2", {"c": 3})
        await connection.execute(
            "UPDATE holdfast.states SET state = (SELECT state FROM holdfast.states "
            "WHERE session_id LIKE '%ana%') WHERE session_id LIKE '%ben%' OR session_id = 's2'"
        )
        with pytest.raises(SealedError, match="another owner"):
            await state.for_owner("ben").short_term.get_state("s1")
        with pytest.raises(SealedError, match="another owner"):
            await state.short_term.get_state("s2")


async def test_a_rotation_touches_no_content_and_goes_on_after_an_interruption(
    place: World,
) -> None:
    first = await place.open(KeyRing({"k1": OLD}, name="one"))
    owners = [first.for_owner(f"owner{at}") for at in range(5)]
    for owner in owners:
        await owner.short_term.set_state("s1", {"step": 1})
    both = await place.open(KeyRing({"k2": NEW, "k1": OLD}, name="two"))
    left = 3

    def die() -> None:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt

    with failpoint("keys.before_rewrap", die), pytest.raises(KeyboardInterrupt):
        await both.ops.rotate_kek()
    # Five owners and the index: two are done.
    assert await both.ops.rotate_kek() == 4
    assert await both.ops.rotate_kek() == 0
    after = await place.open(KeyRing({"k2": NEW}, name="three"))
    for at in range(5):
        assert await after.for_owner(f"owner{at}").short_term.get_state("s1") == {"step": 1}
    with pytest.raises(ConfigError, match="not sealed"):
        await (await place.open(None)).ops.rotate_kek()


_ROTATING = """
import asyncio, os, signal, sys
import holdfast
from holdfast.engines.key_providers.key_ring import KeyRing
from holdfast.values.failpoints import failpoint

failpoint_name, call, left = sys.argv[2], sys.argv[3], 2

def die():
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    keys = {"k1": bytes(range(32))}
    if call == "rotate_kek":
        keys = {"k2": bytes(range(1, 33)), **keys}
    async with holdfast.open(sys.argv[1], seal=KeyRing(keys, name="dying")) as state:
        with failpoint(failpoint_name, die):
            if call == "rotate_kek":
                await state.ops.rotate_kek()
            else:
                await state.ops.rotate_dek(older_than_seconds=86_400)

asyncio.run(main())
"""


async def _killed_at(failpoint_name: str, url: str, call: str) -> None:
    """Rotate keys in a process that is killed when it comes to the failpoint a third time."""
    dying = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _ROTATING, url, failpoint_name, call
    )
    assert await dying.wait() == -signal.SIGKILL


async def test_a_rotation_whose_process_is_killed_goes_on() -> None:
    settings = Settings(auto_migrate=True)
    async with empty_database() as url:
        async with holdfast.open(url, settings=settings, seal=RING) as state:
            for at in range(5):
                await state.for_owner(f"owner{at}").short_term.set_state("s1", {"step": at})
        for _ in range(2):
            await _killed_at("keys.before_rewrap", url, "rotate_kek")
        both = KeyRing({"k2": NEW, "k1": OLD}, name="both")
        async with holdfast.open(url, settings=settings, seal=both) as state:
            assert await state.ops.rotate_kek() == 2
        new = KeyRing({"k2": NEW}, name="new")
        async with holdfast.open(url, settings=settings, seal=new) as state:
            for at in range(5):
                found = await state.for_owner(f"owner{at}").short_term.get_state("s1")
                assert found == {"step": at}


async def test_new_keys_encrypt_what_is_new_and_what_is_old_stays_readable(
    place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.wiring.erasure.KEPT_SECONDS", 0)
    state = await place.open()
    ana, ben = state.for_owner("ana"), state.for_owner("ben")
    said = ChatMessage.user("the tide is low", id="m1")
    for view in (ana, ben):
        await view.history.append(AGENT, said, session_id="s1")
        await view.short_term.set_state("old", {"step": 1})
        await view.long_term.save(AGENT, "ana sails", topic="boats", idempotency_key="k")
    old = await _numbers(state)
    assert await state.ops.rotate_dek() == 2
    new = await _numbers(state)
    assert {subject: len(numbers) for subject, numbers in new.items()} == {
        "ana": 2,
        "ben": 2,
        "holdfast.index": 1,
    }
    for reader in (state, await place.open()):
        again, key = reader.for_owner("ana"), reader._connections.seal("default").keys
        assert key is not None
        current = await key.of_subject("ana")
        assert {current.number} == new["ana"] - old["ana"]
        assert await again.short_term.get_state("old") == {"step": 1}
        # Retries from before, and what is narrowed by a value that is compared.
        await again.history.append(AGENT, said, session_id="s1")
        [found] = await again.history.get_messages(AGENT, session_id="s1")
        assert found.text == "the tide is low"
        await again.long_term.save(AGENT, "ana sails", topic="boats", idempotency_key="k")
        assert len(await again.long_term.search(AGENT, "", topic="boats")) == 1
        [hit] = await again.episodes.recall(AGENT, "tide")
        assert hit.event.id == "m1"
        # What is written now has the new key.
        await again.short_term.set_state("new", {"step": 2})
        box = Box.of_text(await _state_box(reader, owned_id("ana", "new")))
        assert box.number == current.number
    # A second rotation, of what is old enough, and one that finds nothing old.
    assert await state.ops.rotate_dek(older_than_seconds=3600) == 0
    assert await state.ops.rotate_dek() == 2
    with pytest.raises(InvalidInputError, match="older_than_seconds"):
        await state.ops.rotate_dek(older_than_seconds=-1)
    await ana.short_term.set_state("newest", {"step": 3})
    hers = (await _numbers(state))["ana"]
    assert len(hers) == 3
    report = await state.erase(subject="ana")
    assert report.receipt is not None
    assert set(report.receipt["data_keys"]) == hers
    assert "ana" not in await _numbers(state)
    assert await ben.short_term.get_state("old") == {"step": 1}
    with pytest.raises(ConfigError, match="not sealed"):
        await (await place.open(None)).ops.rotate_dek()


async def test_of_two_rotations_at_once_one_replaces_each_key(place: World) -> None:
    states = [await place.open() for _ in range(3)]
    for at in range(4):
        await states[0].for_owner(f"owner{at}").short_term.set_state("s1", {"step": at})
    counts = await asyncio.gather(*(one.ops.rotate_dek() for one in states))
    found = await _numbers(states[0])
    assert sum(len(numbers) - 1 for numbers in found.values()) == sum(counts)
    for at in range(4):
        for state in states:
            assert await state.for_owner(f"owner{at}").short_term.get_state("s1") == {"step": at}


async def test_a_replacement_of_keys_whose_process_is_killed_goes_on() -> None:
    settings = Settings(auto_migrate=True)
    async with empty_database() as url:
        async with holdfast.open(url, settings=settings, seal=RING) as state:
            for at in range(5):
                await state.for_owner(f"owner{at}").short_term.set_state("s1", {"step": at})
        async with connected(url) as connection:
            await connection.execute(
                "UPDATE holdfast.data_keys SET created_at = created_at - interval '2 days'"
            )
        for _ in range(2):
            await _killed_at("keys.before_replace", url, "rotate_dek")
        async with holdfast.open(url, settings=settings, seal=RING) as state:
            assert await state.ops.rotate_dek(older_than_seconds=86_400) == 1
            assert sorted(map(len, (await _numbers(state)).values())) == [1, 2, 2, 2, 2, 2]
            for at in range(5):
                found = await state.for_owner(f"owner{at}").short_term.get_state("s1")
                assert found == {"step": at}


async def _numbers(state: State) -> dict[str, set[int]]:
    """The numbers of all data keys, by subject."""
    storage = state._connections.data_keys
    assert storage is not None
    found: dict[str, set[int]] = {}
    for one in await storage("default").page(0, 1000):
        found.setdefault(one.subject, set()).add(one.number)
    return found


async def _state_box(state: State, session: str) -> str:
    """A sealed value of a working state, as it is stored."""
    stored = await state.short_term._storage._inner.read(session, None)  # type: ignore[attr-defined]
    [value] = stored.state.values()
    return str(value["holdfast.sealed"])


async def test_keys_are_read_from_text_and_from_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    base64 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    assert ring_of_text(f"k2:{'22' * 32},k1:{base64}", name="env").current == "k2"
    file = tmp_path / "keys"
    file.write_text(f"# the newest first\nk1:{base64}  # of November\n")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        ring_of_file(str(file))
    file.chmod(0o600)
    key = await RING.wrap("k1", bytes(32), b"here")
    assert await ring_of_file(str(file)).unwrap("k1", key, b"here") == bytes(32)
    for wrong in (
        "",
        "k1",
        "k1:abc",
        f"k1:{'11' * 16}",
        f"a b:{base64}",
        f"k1:{base64},k1:{base64}",
    ):
        with pytest.raises(ConfigError) as raised:
            ring_of_text(wrong, name="env")
        assert "AAECAw" not in str(raised.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        ring_of_file(str(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"not a regular file|cannot be read"):
        ring_of_file(str(tmp_path))


async def test_what_cannot_be_sealed_is_refused_before_anything_is_written() -> None:
    with pytest.raises(ConfigError, match="HOLDFAST_KEYS"):
        holdfast.open("memory:", settings=Settings(seal="env:"))
    with pytest.raises(ConfigError, match="HOLDFAST_SEAL must be"):
        holdfast.open("memory:", seal="vault:x")
    with pytest.raises(InvalidInputError, match="seal"):
        holdfast.open("memory:", seal=cast("KeyRing", 7))
    with pytest.raises(ConfigError, match="embedder"):
        await holdfast.open("memory:", seal=RING, embedder="hash")
    with pytest.raises(ConfigError, match="HOLDFAST_SEAL_VECTORS"):
        await holdfast.open("memory:", seal=RING, settings=Settings(seal_vectors="yes"))
    shown = repr(Settings(seal="env:", keys="k1:" + "11" * 32))
    assert "1111" not in shown


async def test_what_others_write_with_a_destroyed_key_is_deleted_too(
    place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, other = await place.open(), await place.open()
    ana = other.for_owner("ana")
    await ana.short_term.set_state("s1", {"step": 1})

    async def meanwhile() -> None:
        # Another process, which has not noticed yet that the key was destroyed.
        await ana.short_term.set_state("s2", {"step": 2})

    monkeypatch.setattr("holdfast.wiring.erasure._settle", lambda _connections: meanwhile)
    report = await state.erase(subject="ana")
    assert report.counts == {"states": 1}
    assert await state.for_owner("ana").short_term.get_state("s2") == {}
    assert (await state.erase(subject="ana", dry_run=True)).counts == {}


async def test_an_erasure_destroys_the_keys_first_and_its_receipt_names_them(
    place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.wiring.erasure.KEPT_SECONDS", 0)
    state, other = await place.open(), await place.open()
    ana, ben = state.for_owner("ana"), state.for_owner("ben")
    for view in (ana, ben, other.for_owner("ana")):
        await view.short_term.set_state("s1", {"step": 1})

    def die() -> None:
        raise KeyboardInterrupt

    with failpoint("erase.after_shred", die), pytest.raises(KeyboardInterrupt):
        await state.erase(subject="ana")
    # The rows are still there, and this process cannot read them any more.
    with pytest.raises(SealedError, match="destroyed"):
        await ana.short_term.get_state("s1")
    report = await state.erase(subject="ana")
    assert report.receipt is not None
    [number] = report.receipt["data_keys"]
    assert str(number) not in await _wrapped(place)
    assert await ben.short_term.get_state("s1") == {"step": 1}
    assert await ana.short_term.get_state("s1") == {}
    await ana.short_term.set_state("s1", {"step": 2})
    assert await ana.short_term.get_state("s1") == {"step": 2}
    [record] = [one async for one in state.ops.erasures()]
    assert record.data_keys == (number,)


async def _wrapped(place: World) -> str:
    """The rows of data keys."""
    return "\n".join(one for one in (await place.dump()).splitlines() if "k1" in one)
