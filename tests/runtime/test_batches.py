"""Requests that many tasks make at the same time go out together, and each gets its own answer."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence

import pytest

from holdfast.runtime.batches import Batches
from holdfast.values.errors import TimedOutError

pytestmark = pytest.mark.asyncio(loop_scope="session")
trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace", default="")


async def test_what_is_added_during_a_request_goes_out_in_the_next_one() -> None:
    sent: list[list[int]] = []
    first_is_out, go_on = asyncio.Event(), asyncio.Event()

    async def send(items: list[int]) -> Sequence[str]:
        sent.append(items)
        first_is_out.set()
        await go_on.wait()
        return [f"answer {item}" for item in items]

    batches: Batches[int, str] = Batches(send, most=3)
    waiting = [asyncio.create_task(batches.add(0))]
    await first_is_out.wait()
    waiting += [asyncio.create_task(batches.add(at)) for at in range(1, 6)]
    await asyncio.sleep(0)
    go_on.set()
    assert await asyncio.gather(*waiting) == [f"answer {at}" for at in range(6)]
    assert sent == [[0], [1, 2, 3], [4, 5]]


async def test_an_error_is_that_of_one_item_or_of_all() -> None:
    async def send(items: list[int]) -> Sequence[int | Exception]:
        if 9 in items:
            raise ValueError("the request failed")
        return [KeyError(item) if item == 1 else item for item in items]

    batches: Batches[int, int] = Batches(send, most=10)
    found = await asyncio.gather(*(batches.add(at) for at in range(3)), return_exceptions=True)
    assert found[0] == 0
    assert isinstance(found[1], KeyError)
    assert found[2] == 2
    found = await asyncio.gather(*(batches.add(at) for at in (8, 9)), return_exceptions=True)
    assert [str(one) for one in found] == ["the request failed"] * 2
    assert await batches.add(4) == 4


async def test_one_that_gives_up_does_not_hold_up_the_others() -> None:
    go_on = asyncio.Event()

    async def send(items: list[int]) -> Sequence[int]:
        await go_on.wait()
        return items

    batches: Batches[int, int] = Batches(send, most=10)
    gone, kept = (asyncio.create_task(batches.add(at)) for at in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    go_on.set()
    assert await kept == 1
    with pytest.raises(asyncio.CancelledError):
        await gone


async def test_a_request_runs_in_the_context_of_its_first_item() -> None:
    seen: list[str] = []
    go_on = asyncio.Event()

    async def send(items: list[int]) -> Sequence[int]:
        seen.append(trace.get())
        await go_on.wait()
        return items

    batches: Batches[int, int] = Batches(send, most=10)

    async def add(item: int) -> int:
        trace.set(f"trace {item}")
        return await batches.add(item)

    waiting = [asyncio.create_task(add(0))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting += [asyncio.create_task(add(at)) for at in (1, 2)]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(*waiting)
    assert seen == ["trace 0", "trace 1"]


async def test_none_waits_for_ever_for_a_request_that_was_cancelled() -> None:
    begun = asyncio.Event()

    async def send(items: list[int]) -> Sequence[int]:
        if items == [0]:
            begun.set()
            await asyncio.Event().wait()
        if 7 in items:
            raise asyncio.CancelledError
        return items[:-1] if 8 in items else items

    batches: Batches[int, int] = Batches(send, most=2)
    waiting = [asyncio.create_task(batches.add(0))]
    await begun.wait()
    waiting += [asyncio.create_task(batches.add(at)) for at in range(1, 5)]
    await asyncio.sleep(0)
    assert batches._sender is not None
    batches._sender.cancel()
    async with asyncio.timeout(5):
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in found] == [TimedOutError] * 5
        with pytest.raises(TimedOutError, match="cancelled"):
            await batches.add(7)
        with pytest.raises(ValueError, match="shorter"):
            await batches.add(8)
        assert await batches.add(9) == 9
