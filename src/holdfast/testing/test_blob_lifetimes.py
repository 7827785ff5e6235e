"""What every ``Blobs`` promises about the lifetime that a blob is stored with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.contracts.blobs import Blobs
from holdfast.testing.harness import Harness
from holdfast.values.errors import InvalidInputError, NotFoundError

CONTRACT = "blobs"
pytestmark = pytest.mark.asyncio(loop_scope="session")

DAY = 86_400


async def _is_there(store: Blobs, ref: str) -> bool:
    try:
        await store.resolve(ref)
    except NotFoundError:
        return False
    return True


async def _chunks() -> AsyncIterator[bytes]:
    yield b"abc"


async def test_store_pins_in_the_same_step(harness: Harness, store: Blobs) -> None:
    refs = [
        await store.store(b"abc", pinned=True),
        await store.store_stream(_chunks(), pinned=True),
    ]
    for ref in refs:
        info = await store.stat(ref)
        assert (info.pinned, info.expires_at) == (True, None)
    await harness.elapse(1000 * DAY)
    assert await store.sweep() == 0
    await harness.reopen()
    store = harness.store(CONTRACT)
    for ref in refs:
        assert await store.resolve(ref) == b"abc"
        await store.unpin(ref)
        assert (await store.stat(ref)).pinned is False
    await harness.elapse(2 * DAY)
    assert await store.sweep() == 2
    assert [await _is_there(store, ref) for ref in refs] == [False, False]


async def test_store_takes_a_ttl_seconds_of_its_own(harness: Harness, store: Blobs) -> None:
    short = await store.store(b"abc", ttl_seconds=60)
    long = await store.store_stream(_chunks(), ttl_seconds=30 * DAY)
    usual = await store.store(b"abc")
    assert (await store.stat(short)).pinned is False
    await harness.elapse(61)
    there = [await _is_there(store, ref) for ref in (short, long, usual)]
    assert there == [False, True, True]
    await harness.elapse(2 * DAY)
    there = [await _is_there(store, ref) for ref in (short, long, usual)]
    assert there == [False, True, False]


async def test_a_pin_together_with_ttl_seconds_is_refused(store: Blobs) -> None:
    bad: Any
    for bad, field in (
        ({"pinned": True, "ttl_seconds": 60}, "ttl_seconds"),
        ({"ttl_seconds": 0}, "ttl_seconds"),
        ({"ttl_seconds": float("nan")}, "ttl_seconds"),
        ({"ttl_seconds": "60"}, "ttl_seconds"),
        ({"pinned": "yes"}, "pinned"),
        ({"pinned": None}, "pinned"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            await store.store(b"abc", **bad)
        assert caught.value.field == field
        with pytest.raises(InvalidInputError) as caught:
            await store.store_stream(_chunks(), **bad)
        assert caught.value.field == field
