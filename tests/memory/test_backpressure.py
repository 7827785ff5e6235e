"""What happens when Redis is nearly full: who filled it waits, the others go on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from holdfast.engines.hybrid.backpressure import Backpressure
from holdfast.values.errors import BackPressureError
from tests.engines.hybrid import HybridHarness
from tests.memory.scenes import bare, event, flush, notes

pytestmark = pytest.mark.asyncio(loop_scope="session")
LARGE = "x" * 200_000

Fill = Callable[[float], Awaitable[None]]


@pytest_asyncio.fixture(loop_scope="session")
async def fill(hybrid: HybridHarness) -> AsyncIterator[Fill]:
    """Makes the memory that is used a part of what the server may use."""

    async def to(part: float) -> None:
        async with bare() as client:
            used = (await client.info("memory"))["used_memory"]
            await client.config_set("maxmemory", round(used / part))

    del hybrid  # its server is the one
    yield to
    async with bare() as client:
        await client.config_set("maxmemory", 0)


async def test_a_tenant_that_fills_redis_does_not_stop_another(
    hybrid: HybridHarness, fill: Fill
) -> None:
    eve, max_ = (hybrid.store("episodes", tenant=name) for name in ("eve", "max"))
    backpressure = Backpressure(hybrid.queue, every_seconds=0)
    for name in ("eve", "max"):
        hybrid.log(hybrid._prefix + name)._backpressure = backpressure
    for at in range(30):
        await eve.append([event(f"{at} {LARGE}")])
    await fill(0.85)
    with pytest.raises(BackPressureError, match="maxmemory"):
        await eve.append([event("one more")])
    await max_.append([event("mine")])
    assert not await backpressure.check(hybrid._prefix + "max")

    await fill(0.95)
    with pytest.raises(BackPressureError, match="maxmemory"):
        await max_.append([event("at the end")])

    await fill(0.85)
    await flush(hybrid)
    await fill(0.5)
    await eve.append([event("again")])
    assert notes(await eve.recent(event("").agent_id, session_id="s1", limit=1)) == ["again"]


async def test_a_tenant_alone_may_use_what_there_is(hybrid: HybridHarness, fill: Fill) -> None:
    eve = hybrid.store("episodes", tenant="eve")
    backpressure = Backpressure(hybrid.queue, every_seconds=0)
    hybrid.log(hybrid._prefix + "eve")._backpressure = backpressure
    await eve.append([event(LARGE)])
    await fill(0.55)
    assert not await backpressure.check(hybrid._prefix + "eve")
    await fill(0.7)
    assert await backpressure.check(hybrid._prefix + "eve")
    await eve.append([event("slower")])
