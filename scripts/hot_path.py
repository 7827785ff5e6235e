"""One hot call over and over, for a profiler to look at.

::

    py-spy record --rate 500 --output record.svg -- python scripts/hot_path.py record

The calls: append, recall, record, hydrate, claim. Each runs for some seconds on servers of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable

from holdfast import AgentId, ChatMessage, State
from holdfast import open as open_state
from holdfast.bench.servers import started
from holdfast.wiring.settings import Settings

AGENT = AgentId("bench", "a1")
BODY = "the tide is low and the harbour is full of ships " * 36
BATCH = 50


async def _append(state: State) -> Callable[[int], Awaitable[object]]:
    return lambda _n: state.history.append(AGENT, ChatMessage.user(BODY), session_id="s1")


async def _recall(state: State) -> Callable[[int], Awaitable[object]]:
    memory = state.memory(AGENT, session_id="s1")
    await memory.record_many(
        [("note", {"text": f"{BODY} {at} tide{at % 97} ship{at % 31}"}) for at in range(500)]
    )
    return lambda n: memory.recall(f"tide{n % 97} and ship{n % 31}")


async def _record(state: State) -> Callable[[int], Awaitable[object]]:
    memory = state.memory(AGENT, session_id="s1")
    return lambda n: memory.record("note", {"text": BODY, "number": n})


async def _hydrate(state: State) -> Callable[[int], Awaitable[object]]:
    memory = state.memory(AGENT, session_id="s1")
    await memory.record_many([("note", {"text": BODY, "number": at}) for at in range(100)])
    await memory.state.set({"current_task": "x"})
    return lambda _n: memory.hydrate()


async def _claim(state: State) -> Callable[[int], Awaitable[object]]:
    async def work(_number: int) -> None:
        for _ in range(BATCH):
            await state.tasks.submit(AGENT, ChatMessage.user("work"))
        claimed = await state.tasks.claim("w1", limit=BATCH)
        await state.tasks.complete_many([one.lease for one in claimed])

    return work


CALLS = {
    "append": (_append, False),
    "recall": (_recall, False),
    "record": (_record, True),
    "hydrate": (_hydrate, True),
    "claim": (_claim, False),
}
"""Each call, and whether it runs on Postgres and Redis together or on Postgres alone."""


async def main(name: str, seconds: float) -> None:
    """Run one call for so long."""
    make, hybrid = CALLS[name]
    async with started() as servers:
        state = await open_state(
            await servers.database("profiled"),
            redis=servers.valkey if hybrid else None,
            settings=Settings(auto_migrate=True),
        )
        async with state:
            call = await make(state)
            until, done = time.monotonic() + seconds, 0
            while time.monotonic() < until:
                await call(done)
                done += 1
    print(f"{name}: {done} calls in {seconds:g} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("call", choices=CALLS)
    parser.add_argument("--seconds", type=float, default=8)
    given = parser.parse_args()
    asyncio.run(main(given.call, given.seconds))
