"""What every ``KeyStore`` promises."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.kernel.core.errors import InvalidInputError
from holdfast.kernel.storage.keys import KeyStore, new_key_text
from holdfast.testing.harness import Harness

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


async def test_keys_are_listed_by_when_they_were_created(harness: Harness, store: KeyStore) -> None:
    made = []
    for owner in ("zoe", "ana", "max"):
        made.append((await store.create(owner)).key)
        await harness.elapse(1)
    assert await store.list_keys() == made


async def test_one_tenant_neither_lists_nor_revokes_anothers_keys(
    harness: Harness, store: KeyStore
) -> None:
    made = await store.create("ana")
    other = harness.store(CONTRACT, tenant="other")
    assert await other.list_keys() == []
    assert await other.revoke(made.key.id) is False
    assert await store.verify(made.text) == made.key


@pytest.mark.parametrize("owner", ["", "a\x00b", "x" * 600, None, 7])
async def test_an_owner_that_is_empty_or_no_id_is_refused(store: KeyStore, owner: Any) -> None:
    with pytest.raises(InvalidInputError, match="owner"):
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
