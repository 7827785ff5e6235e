"""Charts of the health page, and the share of a service's event loop that Studio uses."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import httpx
import pytest

import holdfast
from holdfast import ChatMessage, Settings, State
from holdfast.server.loop_shares import LoopShares, Share
from holdfast.server.options import ServiceOptions
from holdfast.studio.mount import StudioMount
from holdfast.studio.samples import SHOWN, Samples
from holdfast.values.ids import new_ref
from tests.engines.postgres_database import empty_database
from tests.studio.visiting import BASE, Visitor
from tests.wiring.valkey import valkey

pytestmark = pytest.mark.asyncio
R = TypeVar("R")


async def test_a_sample_has_the_open_tasks_the_backlogs_and_the_engines(state: State) -> None:
    await state.tasks.submit("writer", ChatMessage.user("hello"))
    samples = Samples(state, asyncio.Event())
    await samples.take()
    tasks, events, latency = samples.charts()
    assert {one["name"]: one["values"] for one in tasks["series"]} == {
        "Queued": [1],
        "Working": [0],
        "Waits for a person": [0],
    }
    # Without Redis no event waits in it.
    assert [one["name"] for one in events["series"]] == ["Not yet in the index of words"]
    assert [one["colour"] for one in tasks["series"]] == ["grey", "blue", "amber"]
    assert all(one["values"][0] >= 0 for one in latency["series"])


async def test_events_that_wait_in_redis_are_measured_where_there_is_redis() -> None:
    settings = Settings(auto_migrate=True, ack_level="hot", background=False)
    async with (
        empty_database() as url,
        holdfast.open(url, redis=valkey().url, tenant=new_ref(), settings=settings) as state,
    ):
        samples = Samples(state, asyncio.Event())
        await samples.take()
        _, events, _ = samples.charts()
        assert len(events["series"]) == 2
        async with Visitor(state) as visitor:
            assert "events in Redis" in await visitor.page("/studio/health")


async def test_the_health_page_says_what_there_is_and_once(state: State) -> None:
    health = await state.ops.health()
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/health")
    assert "events in Redis" not in page
    for engine in health.engines:
        if engine.version:
            assert page.count(engine.version) == 1


async def test_an_engine_that_does_not_answer_leaves_a_gap() -> None:
    async with holdfast.open("memory:") as state:
        samples = Samples(state, asyncio.Event())
        await samples.take()
    await samples.take()
    tasks, _, _ = samples.charts()
    assert tasks["series"][0]["values"] == [0, None]


async def test_charts_have_a_limit_of_points_and_the_newest_is_among_them(state: State) -> None:
    samples = Samples(state, asyncio.Event())
    await samples.take()
    samples._kept.extend([samples._kept[0]] * (2 * SHOWN))
    await samples.take()
    tasks, _, _ = samples.charts()
    assert len(tasks["times"]) <= SHOWN
    assert tasks["times"][-1] == samples._kept[-1].at


async def test_the_health_page_has_a_chart_of_each(state: State) -> None:
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/health")
        assert page.count("<figure") == 3
        assert "uplot.min.js" in page
        assert (await visitor.get("/studio/static/uplot.min.js")).status_code == 200
        assert "uplot" not in await visitor.page("/studio/tasks")


class _Counted(LoopShares):
    def __init__(self) -> None:
        super().__init__()
        self.callers: list[Share] = []

    async def run(self, who: Share, request: Coroutine[Any, Any, R]) -> R:
        self.callers.append(who)
        return await super().run(who, request)


async def test_requests_of_studio_use_the_share_of_their_caller_in_the_service(
    state: State,
) -> None:
    shares = _Counted()
    key = await state.keys.create("ana")
    operator = await state.keys.create("ops", scope="operator")
    mount = StudioMount(state, ServiceOptions(auth=True), shares=shares)
    for text in (key.text, operator.text):
        transport = httpx.ASGITransport(app=mount.asgi)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            sent = await client.post("/studio/login", data={"key": text}, headers={"Origin": BASE})
            assert sent.status_code == 303
            assert (await client.get("/studio/tasks")).status_code == 200
    assert shares.callers == [(state.tenant, "ana"), (state.tenant, operator.key.id)]
