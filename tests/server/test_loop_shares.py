"""A caller whose requests are expensive leaves the event loop to the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, ClassVar

import grpc
import pytest
from a2a.types import a2a_pb2_grpc

from holdfast import State
from holdfast.server import service as service_module
from holdfast.server.loop_shares import NOBODY, LoopShares, Share
from holdfast.testing.postgres_server import free_port
from tests.server.running import (
    MODERN,
    example_app,
    http_client,
    said,
    sent,
    serving,
    talking,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA, MAX, EVE = ("acme", "ana"), ("acme", "max"), ("acme", "eve")
STEPS, REQUESTS = 3, 40


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
    """Expensive requests are on their way without end; another owner gets its answers."""
    eve, max_ = [(await state.keys.create(owner)).text for owner in ("eve", "max")]
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": [{"a": [1]}] * 2_000}]}
    sent = {"message": message, "configuration": {"returnImmediately": True}}
    body, attacked, answered = json.dumps(sent).encode(), asyncio.Event(), asyncio.Event()

    async with (
        serving(example_app(), state, auth=True, workers=0) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=120) as http,
    ):

        async def attack() -> None:
            key = {"Authorization": f"Bearer {eve}", "Content-Type": "application/json"}
            while not answered.is_set():
                answer = await http.post("/message:send", content=body, headers=key)
                assert answer.status_code == 200
                attacked.set()

        attacks = [asyncio.create_task(attack()) for _ in range(25)]
        async with asyncio.timeout(120):
            await attacked.wait()
            for _ in range(10):
                mine = await http.get("/tasks", headers={"Authorization": f"Bearer {max_}"})
                assert mine.status_code == 200
        answered.set()
        await asyncio.gather(*attacks)


class Watched(LoopShares):
    """Remembers who was charged."""

    charged: ClassVar[set[Share]] = set()

    async def run(self, who: Share, request: Coroutine[Any, Any, Any]) -> Any:
        self.charged.add(who)
        return await super().run(who, request)


@pytest.fixture
def charged(monkeypatch: pytest.MonkeyPatch) -> set[Share]:
    monkeypatch.setattr(service_module, "LoopShares", Watched)
    Watched.charged.clear()
    return Watched.charged


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize("streaming", [False, True], ids=["answer", "stream"])
async def test_a_request_is_charged_to_the_owner_of_its_key(
    state: State, charged: set[Share], binding: str, streaming: bool
) -> None:
    key = (await state.keys.create("ana")).text
    async with (
        serving(example_app(), state, auth=True) as service,
        talking(service, key=key, binding=binding, streaming=streaming) as client,
    ):
        charged.clear()
        assert await sent(client, said("echo it"))
        assert charged == {(state.tenant, "ana")}


async def test_a_request_over_grpc_is_charged_to_the_owner_of_its_key(
    state: State, charged: set[Share]
) -> None:
    port, key = free_port(), (await state.keys.create("ana")).text
    async with (
        serving(example_app(), state, auth=True, grpc_port=port),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        make: Callable[[Any], Any] = a2a_pb2_grpc.A2AServiceStub
        stub, mine = make(channel), [("authorization", f"Bearer {key}")]
        await stub.SendMessage(said("echo it"), metadata=mine, wait_for_ready=True)
        assert charged == {(state.tenant, "ana")}
        charged.clear()
        assert [one async for one in stub.SendStreamingMessage(said("echo"), metadata=mine)]
        assert charged == {(state.tenant, "ana")}
