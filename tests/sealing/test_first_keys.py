"""The first key of a subject encrypts what must stay equal: a process never loses it."""

from __future__ import annotations

import pytest

from holdfast.engines.inmemory.data_keys import InMemoryDataKeys
from holdfast.engines.inmemory.engine import InMemory
from holdfast.errors import SealedError
from holdfast.sealing.data_keys import KEPT_SECONDS, DataKeys
from tests.sealing.conftest import RING

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_read_of_the_current_key_does_not_lose_the_first_one() -> None:
    now = [0.0]
    storage = InMemoryDataKeys(InMemory())
    keys = DataKeys(storage, RING, tenant="default", clock=lambda: now[0])
    first = await keys.of_subject("ana")
    assert await keys.rotate(0) == 1
    current = await keys.of_subject("ana")
    assert current.first == first
    now[0] = KEPT_SECONDS
    # As a read does, which has the number of the key alone.
    await keys.load([current.number])
    again = await keys.of_subject("ana")
    assert again.first == first
    await keys.load([current.number])
    assert await keys.of_subject("ana") is again


async def test_a_key_that_names_the_first_key_of_another_subject_is_refused() -> None:
    storage = InMemoryDataKeys(InMemory())
    keys = DataKeys(storage, RING, tenant="default")
    ben = await keys.of_subject("ben")
    [stored] = await storage.of_numbers([(await keys.of_subject("ana")).number])
    storage.shred(lambda subject: subject == "ana")
    await storage.add(stored._replace(first=ben.number))
    with pytest.raises(SealedError, match="first key of another subject"):
        await DataKeys(storage, RING, tenant="default").of_subject("ana")
