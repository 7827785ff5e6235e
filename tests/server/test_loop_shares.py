"""A caller whose requests are expensive leaves the event loop to the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from holdfast import State
from holdfast.server.loop_shares import NOBODY, LoopShares
from tests.server.running import MODERN, example_app, http_client, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA, MAX, EVE = ("acme", "ana"), ("acme", "max"), ("acme", "eve")
STEPS, REQUESTS, ATTACKS = 3, 40, 50


class Load:
    """Requests on a clock of their own: only their steps let time pass."""

    def __init__(self) -> None:
        self.now = 100.0
        self.steps = 0
        self.shares = LoopShares(clock=lambda: self.now)

    async def heavy(self) -> str:
        """A request of several long steps."""
        for _ in range(STEPS):
            self.now += 0.1
            self.steps += 1
            await asyncio.sleep(0)
        return "done"

    async def light(self) -> None:
        """A request of many short steps."""
        for _ in range(20):
            await asyncio.sleep(0)


async def test_a_heavy_caller_leaves_time_to_a_light_one() -> None:
    load = Load()
    tasks = [asyncio.create_task(load.shares.run(ANA, load.heavy())) for _ in range(REQUESTS)]
    for _ in range(5):
        await load.shares.run(MAX, load.light())
    assert 0 < load.steps < STEPS * REQUESTS
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_caller_alone_does_not_wait() -> None:
    load = Load()
    async with asyncio.timeout(60):
        found = await asyncio.gather(*(load.shares.run(ANA, load.heavy()) for _ in range(REQUESTS)))
    assert found == ["done"] * REQUESTS
    assert load.steps == STEPS * REQUESTS


async def test_two_heavy_callers_leave_time_too() -> None:
    load = Load()
    tasks = [
        asyncio.create_task(load.shares.run(who, load.heavy()))
        for _ in range(REQUESTS)
        for who in (ANA, EVE)
    ]
    for _ in range(5):
        await load.shares.run(MAX, load.light())
    assert load.steps < 2 * STEPS * REQUESTS
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_long_time_alone_is_not_held_against_a_caller() -> None:
    load = Load()
    for _ in range(100):
        await load.shares.run(ANA, load.heavy())
    await load.shares.run(MAX, load.light())
    async with asyncio.timeout(60):
        assert await load.shares.run(ANA, load.heavy()) == "done"


async def test_a_request_is_cancelled_and_fails_as_without_shares() -> None:
    load, seen = LoopShares(), []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cleaned up")

    async def handles() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "went on"
        return ""

    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError("x")

    for request in (waits, handles):
        task = asyncio.create_task(load.run(NOBODY, request()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        seen.append("cancelled" if task.cancelled() else task.result() or "")
    assert seen == ["cleaned up", "cancelled", "went on"]
    with pytest.raises(KeyError):
        await load.run(NOBODY, fails())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await load.run(NOBODY, waits())


async def test_a_caller_that_waits_for_its_turn_can_be_cancelled() -> None:
    load = Load()
    first = [asyncio.create_task(load.shares.run(ANA, load.heavy())) for _ in range(3)]
    await load.shares.run(MAX, load.light())
    for task in first:
        task.cancel()
    assert await asyncio.gather(*first, return_exceptions=True)
    async with asyncio.timeout(60):
        assert await load.shares.run(ANA, load.heavy()) == "done"


async def test_the_items_of_a_stream_come_in_order_and_end() -> None:
    async def items() -> AsyncIterator[int]:
        for number in range(5):
            await asyncio.sleep(0)
            yield number

    assert [one async for one in LoopShares().iterate(ANA, items())] == [0, 1, 2, 3, 4]


async def test_one_owner_cannot_keep_the_service_from_another(state: State) -> None:
    """Many requests of thousands of values are on their way; another owner gets answers."""
    eve, max_ = [(await state.keys.create(owner)).text for owner in ("eve", "max")]
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": [{"a": [1]}] * 2_000}]}
    sent = {"message": message, "configuration": {"returnImmediately": True}}
    body, answered = json.dumps(sent).encode(), 0

    async with (
        serving(example_app(), state, auth=True, workers=0) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=120) as http,
    ):

        async def attack() -> None:
            nonlocal answered
            key = {"Authorization": f"Bearer {eve}", "Content-Type": "application/json"}
            answer = await http.post("/message:send", content=body, headers=key)
            assert answer.status_code == 200
            answered += 1

        attacks = [asyncio.create_task(attack()) for _ in range(ATTACKS)]
        async with asyncio.timeout(120):
            while not answered:
                await asyncio.sleep(0.01)
        for _ in range(5):
            mine = await http.get("/tasks", headers={"Authorization": f"Bearer {max_}"})
            assert mine.status_code == 200
        before_the_last = answered
        await asyncio.gather(*attacks)
    assert before_the_last < ATTACKS
