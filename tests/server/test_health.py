"""``/health``: whether to send requests here, for everybody; why not, for operators."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
import pytest_asyncio

import holdfast
from holdfast import State
from holdfast.wiring.health import Health
from tests.server.running import example_app, http_client, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture
async def memory() -> AsyncIterator[State]:
    async with holdfast.open("memory:") as state:
        yield state


@pytest_asyncio.fixture
async def http(memory: State) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serving(example_app(), memory) as service,
        http_client(base_url=service.url, timeout=60) as client,
    ):
        yield client


async def test_health_is_for_everybody_and_its_details_for_operators(memory: State) -> None:
    owner = (await memory.keys.create("ana")).text
    key = (await memory.keys.create("ana", scope="operator")).text
    async with (
        serving(example_app(), memory, auth=True) as service,
        http_client(base_url=service.url) as http,
    ):
        answer = await http.get("/health")
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        for other in (f"Bearer {owner}", "Bearer hf_mfrw2zi_wrong"):
            answer = await http.get("/health", headers={"Authorization": other})
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        known = await http.get("/health", headers={"Authorization": f"Bearer {key}"})
        assert known.json()["engines"][0]["engine"] == "inmemory"
        assert "durability" in known.json()["engines"][0]
        service._closing.set()
        answer = await http.get("/health")
        assert (answer.status_code, answer.json()) == (503, {"status": "stopping"})


async def test_an_engine_that_is_degraded_is_for_operators_to_know(memory: State) -> None:
    key = (await memory.keys.create("ana", scope="operator")).text
    found = await memory.ops.health()

    async def degraded() -> Any:
        return Health(tuple(replace(one, status="degraded") for one in found.engines))

    memory._connections.probe = degraded  # type: ignore[method-assign]
    async with (
        serving(example_app(), memory, auth=True) as service,
        http_client(base_url=service.url) as http,
    ):
        assert (await http.get("/health")).json() == {"status": "ok"}
        known = await http.get("/health", headers={"Authorization": f"Bearer {key}"})
        assert (known.status_code, known.json()["status"]) == (200, "degraded")


async def test_without_keys_everybody_sees_the_engines(http: httpx.AsyncClient) -> None:
    assert (await http.get("/health")).json()["engines"][0]["engine"] == "inmemory"


async def test_a_state_that_does_not_answer_is_503(http: httpx.AsyncClient, memory: State) -> None:
    class Down:
        status = "down"
        engines = ()

    async def down() -> Any:
        return Down()

    memory._connections.probe = down  # type: ignore[method-assign]
    answer = await http.get("/health")
    assert (answer.status_code, answer.json()["status"]) == (503, "down")


async def test_those_who_ask_at_the_same_time_share_one_probe(
    http: httpx.AsyncClient, memory: State
) -> None:
    probe, running, most = memory._connections.probe, 0, 0

    async def counted() -> Health:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(200):
            await asyncio.sleep(0)
        running -= 1
        return await probe()

    memory._connections.probe = counted  # type: ignore[method-assign]
    answers = await asyncio.gather(*(http.get("/health") for _ in range(30)))
    assert {one.status_code for one in answers} == {200}
    assert most == 1
