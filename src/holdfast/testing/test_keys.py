"""What every ``KeyStore`` promises."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast.contracts.keys import KeyStore, new_key_text
from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError, NotFoundError
from holdfast.values.keys import KeyScope

CONTRACT = "keys"
pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_key_that_was_created_is_verified_as_its_tenant_and_owner(store: KeyStore) -> None:
    made = await store.create("ana", name="laptop")
    found = await store.verify(made.text)
    assert found == made.key
    assert (found.owner, found.name, found.revoked_at) == ("ana", "laptop", None)
    assert made.text not in repr(made)


async def test_every_key_is_new(store: KeyStore) -> None:
    made = [await store.create("ana") for _ in range(3)]
    assert len({one.text for one in made}) == len({one.key.id for one in made}) == 3


async def test_a_key_of_another_tenant_is_verified_too(harness: Harness, store: KeyStore) -> None:
    made = await harness.store(CONTRACT, tenant="other").create("ana")
    assert await store.verify(made.text) == made.key
    assert made.key.tenant.endswith("other")


async def test_an_unknown_key_is_none(store: KeyStore) -> None:
    made = await store.create("ana")
    assert await store.verify(made.text + "x") is None
    assert await store.verify(made.text[:-1]) is None
    assert await store.verify(new_key_text("nobody")) is None


@pytest.mark.parametrize(
    "text", ["", "hf_", "hf__x", "hf_mfrw2zi", "sk_mfrw2zi_x", "hf_!_x", "hf_é_x", "x" * 5000]
)
async def test_a_text_that_is_no_key_is_none(store: KeyStore, text: str) -> None:
    assert await store.verify(text) is None


async def test_a_key_whose_tenant_was_exchanged_is_none(harness: Harness, store: KeyStore) -> None:
    mine = await store.create("ana")
    other = await harness.store(CONTRACT, tenant="other").create("ana")
    mark, _, secret = mine.text.split("_", 2)
    assert await store.verify(f"{mark}_{other.text.split('_')[1]}_{secret}") is None


async def test_a_revoked_key_is_none_at_once(harness: Harness, store: KeyStore) -> None:
    made, kept = await store.create("ana"), await store.create("ana")
    assert await store.revoke(made.key.id) is True
    assert await harness.store(CONTRACT).verify(made.text) is None
    assert await store.verify(kept.text) == kept.key


async def test_a_live_key_of_the_tenant_is_found_by_its_id_and_no_other(
    harness: Harness, store: KeyStore
) -> None:
    made = await store.create("ana")
    assert await store.live(made.key.id) == made.key
    found = await store.verify(made.text)
    assert found is not None
    assert found.last_used_at is None
    revoked, expired = await store.create("ana"), await store.create("ana", ttl_seconds=1)
    other = await harness.store(CONTRACT, tenant="other").create("ana")
    await store.revoke(revoked.key.id)
    await harness.elapse(2)
    for key_id in ("nobody", revoked.key.id, expired.key.id, other.key.id):
        assert await store.live(key_id) is None


async def test_a_revoked_key_stays_listed(store: KeyStore) -> None:
    made = await store.create("ana")
    await store.revoke(made.key.id)
    [listed] = await store.list_keys()
    assert listed.id == made.key.id
    assert listed.revoked_at is not None


async def test_revoking_a_key_that_is_not_there_or_was_revoked_is_false(store: KeyStore) -> None:
    made = await store.create("ana")
    assert await store.revoke("nobody") is False
    assert await store.revoke(made.key.id) is True
    assert await store.revoke(made.key.id) is False


async def test_a_key_has_the_scope_that_it_was_created_with(store: KeyStore) -> None:
    assert (await store.create("ana")).key.scope is KeyScope.OWNER
    for scope in KeyScope:
        made = await store.create("ana", scope=str(scope))
        found = await store.verify(made.text)
        assert found is not None
        assert found.scope is made.key.scope is scope


@pytest.mark.parametrize("scope", ["", "admin", "OWNER", None, 7])
async def test_a_scope_that_is_none_of_the_three_is_refused(store: KeyStore, scope: Any) -> None:
    with pytest.raises(InvalidInputError, match="scope"):
        await store.create("ana", scope=scope)
    assert await store.list_keys() == []


async def test_an_expired_key_is_none(harness: Harness, store: KeyStore) -> None:
    made, kept = await store.create("ana", ttl_seconds=60), await store.create("ana")
    assert made.key.expires_at == made.key.created_at + timedelta(seconds=60)
    assert (made.key.ttl_seconds, kept.key.expires_at) == (60, None)
    await harness.elapse(50)
    assert await store.verify(made.text) is not None
    await harness.elapse(11)
    assert await store.verify(made.text) is None
    assert await store.verify(kept.text) is not None
    assert len(await store.list_keys()) == 2


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e300, "60", True])
async def test_a_time_to_live_that_is_no_span_of_time_is_refused(store: KeyStore, ttl: Any) -> None:
    with pytest.raises(InvalidInputError, match="ttl_seconds"):
        await store.create("ana", ttl_seconds=ttl)
    assert await store.list_keys() == []


async def test_the_last_use_of_a_key_is_known_to_the_minute(
    harness: Harness, store: KeyStore
) -> None:
    made = await store.create("ana")

    async def last_used() -> datetime | None:
        [key] = await store.list_keys()
        return key.last_used_at

    assert await last_used() is None
    await asyncio.gather(*(store.verify(made.text) for _ in range(20)))
    first = await last_used()
    assert first is not None
    assert first >= made.key.created_at
    await harness.elapse(30)
    await store.verify(made.text)
    assert await last_used() == first
    await harness.elapse(31)
    await store.verify(made.text)
    second = await last_used()
    assert second is not None
    assert second >= first + timedelta(seconds=60)


async def test_a_rotated_key_has_the_owner_name_scope_and_lifetime_of_the_old_one(
    harness: Harness, store: KeyStore
) -> None:
    old = await store.create("ana", name="laptop", scope="reader", ttl_seconds=60)
    await harness.elapse(30)
    made = await store.rotate(old.key.id)
    again = await store.rotate(made.key.id, grace_seconds=5)
    for one in (made.key, again.key):
        assert (one.owner, one.name, one.scope) == ("ana", "laptop", KeyScope.READER)
        assert one.expires_at == one.created_at + timedelta(seconds=60)
        assert one.last_used_at is None
    assert len({old.text, made.text, again.text}) == 3
    assert await store.verify(again.text) == again.key
    assert len(await store.list_keys()) == 3


async def test_the_old_key_ends_after_the_grace_time(harness: Harness, store: KeyStore) -> None:
    old, other = await store.create("ana"), await store.create("ana")
    made = await store.rotate(old.key.id, grace_seconds=60)
    assert await store.verify(old.text) is not None
    await harness.elapse(61)
    assert await store.verify(old.text) is None
    assert await store.verify(made.text) == made.key
    await store.rotate(other.key.id)
    assert await store.verify(other.text) is None


async def test_a_rotated_key_that_would_have_expired_earlier_still_does(
    harness: Harness, store: KeyStore
) -> None:
    old = await store.create("ana", ttl_seconds=10)
    await store.rotate(old.key.id, grace_seconds=600)
    await harness.elapse(11)
    assert await store.verify(old.text) is None


async def test_a_key_that_is_not_there_was_revoked_or_has_expired_is_not_rotated(
    harness: Harness, store: KeyStore
) -> None:
    revoked, expired = await store.create("ana"), await store.create("ana", ttl_seconds=1)
    await store.revoke(revoked.key.id)
    await harness.elapse(2)
    for key_id in ("nobody", revoked.key.id, expired.key.id):
        with pytest.raises(NotFoundError):
            await store.rotate(key_id, grace_seconds=60)
    assert {key.id for key in await store.list_keys()} <= {revoked.key.id, expired.key.id}


async def test_a_revoked_or_expired_key_can_be_deleted(harness: Harness, store: KeyStore) -> None:
    revoked, expired = await store.create("ana"), await store.create("ana", ttl_seconds=1)
    await store.revoke(revoked.key.id)
    await harness.elapse(2)
    for made in (revoked, expired):
        assert await store.delete(made.key.id) is True
        assert await store.delete(made.key.id) is False
        assert await store.verify(made.text) is None
    assert await store.list_keys() == []


async def test_a_live_key_and_one_that_is_not_there_are_not_deleted(store: KeyStore) -> None:
    made = await store.create("ana", ttl_seconds=600)
    assert await store.delete("nobody") is False
    assert await store.delete(made.key.id) is False
    assert await store.verify(made.text) == made.key


async def test_keys_are_listed_by_when_they_were_created(harness: Harness, store: KeyStore) -> None:
    made = []
    for owner in ("zoe", "ana", "max"):
        made.append((await store.create(owner)).key)
        await harness.elapse(1)
    assert await store.list_keys() == made


async def test_one_tenant_neither_lists_revokes_rotates_nor_deletes_anothers_keys(
    harness: Harness, store: KeyStore
) -> None:
    made, gone = await store.create("ana"), await store.create("max")
    await store.revoke(gone.key.id)
    other = harness.store(CONTRACT, tenant="other")
    assert await other.list_keys() == []
    assert await other.revoke(made.key.id) is False
    assert await other.delete(gone.key.id) is False
    with pytest.raises(NotFoundError):
        await other.rotate(made.key.id)
    assert await store.delete(gone.key.id) is True
    assert await store.verify(made.text) == made.key


@pytest.mark.parametrize("owner", ["", "a\x00b", "x" * 600, None, 7])
async def test_an_owner_that_is_empty_or_no_id_is_refused(store: KeyStore, owner: Any) -> None:
    with pytest.raises(InvalidInputError, match="owner"):
        await store.create(owner)
    assert await store.list_keys() == []


@pytest.mark.parametrize("owner", ["holdfast.", "holdfast.cleanup", "holdfast.owner:3:ana:c1"])
async def test_an_owner_that_begins_with_holdfast_is_refused(store: KeyStore, owner: str) -> None:
    with pytest.raises(InvalidInputError, match=r"owner: must not begin with 'holdfast\.'"):
        await store.create(owner)
    assert await store.list_keys() == []


@pytest.mark.parametrize("name", ["", "a\x00b\n'; --", "\u202e🔑", "n" * 10_000])
async def test_a_keys_name_comes_back_exactly_however_odd(store: KeyStore, name: str) -> None:
    made = await store.create("ana", name=name)
    assert made.key.name == name
    assert [key.name for key in await store.list_keys()] == [name]


async def test_20_concurrent_creates_make_20_keys(store: KeyStore) -> None:
    made = await asyncio.gather(*(store.create("ana") for _ in range(20)))
    assert len({one.text for one in made}) == 20
    assert {key.id for key in await store.list_keys()} == {one.key.id for one in made}


async def test_keys_are_still_there_after_a_reopen(harness: Harness, store: KeyStore) -> None:
    made, gone = await store.create("ana"), await store.create("max")
    await store.revoke(gone.key.id)
    await harness.reopen()
    again = harness.store(CONTRACT)
    assert await again.verify(made.text) == made.key
    assert await again.verify(gone.text) is None
