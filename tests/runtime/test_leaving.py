"""A heartbeat that overtakes the answer to a suspension does not stop the handler."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import holdfast
from holdfast import App, TaskContext
from holdfast.errors import LeaseLostError
from holdfast.runtime.runner import Ending
from holdfast.runtime.worker import Worker

pytestmark = pytest.mark.asyncio(loop_scope="session")


class LateAnswers:
    """A view whose transitions answer only after a heartbeat was refused."""

    def __init__(self, inner: Any, refused: asyncio.Event) -> None:
        self._inner = inner
        self._refused = refused

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return LateAnswers(found, self._refused) if name == "tasks" else found

    def for_tenant(self, tenant: str) -> LateAnswers:
        return LateAnswers(self._inner.for_tenant(tenant), self._refused)

    def elsewhere(self) -> None:
        return None

    async def transition(self, *args: Any, **options: Any) -> Any:
        done = await self._inner.transition(*args, **options)
        async with asyncio.timeout(60):
            await self._refused.wait()
        for _ in range(10):
            # The lease keeper acts on the refusal meanwhile.
            await asyncio.sleep(0)
        return done

    async def heartbeat(self, *args: Any, **options: Any) -> Any:
        try:
            return await self._inner.heartbeat(*args, **options)
        except LeaseLostError:
            self._refused.set()
            raise


@pytest.mark.parametrize("how", ["ask", "sleep"])
async def test_a_heartbeat_that_overtakes_a_suspension_does_not_stop_its_handler(how: str) -> None:
    endings: list[Ending] = []
    app = App("keeper")

    @app.handler
    async def keep(task: TaskContext) -> None:
        if how == "ask":
            await task.ask("Which?")
        else:
            await task.sleep(3600)

    async with holdfast.open("memory:") as state:
        await app.submit(state, "go")
        late: Any = LateAnswers(state, asyncio.Event())
        worker = Worker(app, late, lease_seconds=0.3, watch=endings.append)
        working = asyncio.create_task(worker.run())
        async with asyncio.timeout(60):
            while not endings:
                await asyncio.sleep(0.01)
        worker.stop()
        await working
    expected = {"ask": "input-required", "sleep": "submitted"}[how]
    assert [one.outcome for one in endings] == [expected]
