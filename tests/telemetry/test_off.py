"""Without telemetry no call goes through it: stores and runners are the plain ones."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from types import FrameType
from typing import Any

import pytest

import holdfast
from holdfast import AgentId, App, ChatMessage, Event, State, TaskContext
from holdfast.engines.postgres.engine import Postgres
from holdfast.runtime.runner import Runner
from holdfast.runtime.worker import Worker
from tests.engines.postgres_database import migrated_database
from tests.telemetry.spans import Kept

pytestmark = pytest.mark.asyncio(loop_scope="session")
ANA = AgentId("writer", "ana")


async def test_the_methods_of_the_stores_are_the_plain_ones() -> None:
    async with migrated_database() as url:
        async with holdfast.open(url) as state:
            assert state.tracing is None
            assert state.runner is Runner
            plain = {
                slot.name: type(getattr(state._stores, slot.name))
                for slot in dataclasses.fields(state._stores)
            }
        for name, kind in plain.items():
            if name == "channel" or kind is type(None):
                continue
            # A class of the contracts, as it is written there.
            assert getattr(sys.modules[kind.__module__], kind.__name__) is kind, name
        async with holdfast.open(url, telemetry=Kept().telemetry) as state:
            traced = type(state.history)
            assert traced is not plain["history"]
            assert issubclass(traced, plain["history"])


async def test_the_engine_is_not_watched() -> None:
    async with migrated_database() as url:
        engine = await Postgres.open(url)
        assert "_take" not in vars(engine)
        await engine.aclose()


async def _work(state: State) -> None:
    """A bit of everything, and a task with a step and a child."""
    app = App("writer")

    @app.handler
    async def write(task: TaskContext) -> Any:
        await task.step("fetch", lambda: 1)
        return await task.call("reader", "page 1")

    @app.handler(agent="reader")
    async def read(_task: TaskContext) -> str:
        return "read"

    await state.history.append(ANA, ChatMessage.user("a"), session_id="s1")
    await state.episodes.append([Event(ANA, "s1", "note", {"note": "a"})])
    await state.short_term.set_state("s1", {"a": 1})
    await app.submit(state, "go")
    await Worker(app, state, tenants=[state.tenant]).run_until_idle()


async def test_no_function_of_telemetry_or_of_opentelemetry_is_called() -> None:
    seen: set[str] = set()

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            seen.add(str(frame.f_globals.get("__name__", "")))

    async def calls(**how: Any) -> set[str]:
        seen.clear()
        async with migrated_database() as url, holdfast.open(url, **how) as state:
            sys.setprofile(profile)
            try:
                await _work(state)
            finally:
                sys.setprofile(None)
        return {name for name in seen if name.startswith(("holdfast.telemetry", "opentelemetry"))}

    assert "holdfast.contracts.history" not in seen
    assert await calls() == set()
    assert "holdfast.contracts.history" in seen
    # The same work shows that the profile would have found them.
    assert {"holdfast.telemetry.calls", "holdfast.telemetry.runs"} <= await calls(
        telemetry=Kept().telemetry
    )


async def test_opentelemetry_is_not_even_imported() -> None:
    program = (
        "import asyncio, sys, holdfast\n"
        "async def main():\n"
        "    async with holdfast.open('memory:') as state:\n"
        "        await state.short_term.set_state('s1', {'a': 1})\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program), stdout=asyncio.subprocess.PIPE
    )
    shown, _ = await process.communicate()
    assert (process.returncode, shown.strip()) == (0, b"[]")
