"""The latency part of ``holdfast bench recall``: the time of a question to one of many agents."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from typing import Any

from holdfast.bench.conversations import Conversation
from holdfast.bench.recall_states import analyse, opened, settle
from holdfast.spi.embedding import Embedder
from holdfast.values.content import ChatMessage
from holdfast.wiring.state import State

AGENTS, EVENTS, QUERIES = 50, 500, 400
ROUNDS = 5
"""How often the latency is measured; the median of the rounds is the result, all are reported."""


def percentiles(times: list[float]) -> dict[str, float]:
    """Return the median and the 95th percentile, in milliseconds.

    >>> percentiles([0.001, 0.001, 0.001])
    {'p50_ms': 1.0, 'p95_ms': 1.0}
    """
    return {
        "p50_ms": round(statistics.median(times) * 1e3, 2),
        "p95_ms": round(statistics.quantiles(times, n=20)[-1] * 1e3, 2),
    }


async def latency(
    url: str, model: Embedder | None, conversations: Sequence[Conversation], *, quick: bool
) -> dict[str, Any]:
    """Measure questions to one of many agents on Postgres, about that agent's own conversation.

    A question about another agent's conversation finds nothing, so it would be too fast.
    """
    said = [
        (one, talk) for talk in conversations for turns in talk.sessions.values() for one in turns
    ]
    agents = 5 if quick else AGENTS
    lives = [[said[(a * EVENTS + at) % len(said)] for at in range(EVENTS)] for a in range(agents)]
    asked = [[one.text for one in life[EVENTS // 2][1].questions] for life in lives]
    found: dict[str, Any] = {"agents": agents, "events": EVENTS, "rounds": ROUNDS}
    found["load_average_before"] = os.getloadavg()[0]
    for method, embedder in (("words", None), ("words + embedder", model)):
        if method != "words" and model is None:
            continue
        async with opened(url, f"many {method}", embedder) as state:
            for agent in range(agents):
                turns = [
                    ChatMessage(one.role, one.content, name=one.name) for one, _ in lives[agent]
                ]
                await state.memory(f"a{agent}", session_id=f"s{agent}").record_many(turns)
            for agent in range(agents):
                await settle(state, f"a{agent}")
            await analyse(url)
            rounds = [await _round(state, asked) for _ in range(ROUNDS)]
            found[method] = {
                "p50_ms": statistics.median(one["p50_ms"] for one in rounds),
                "p95_ms": statistics.median(one["p95_ms"] for one in rounds),
                "p50_ms_of_each_round": [one["p50_ms"] for one in rounds],
            }
    found["load_average_after"] = os.getloadavg()[0]
    return found


async def _round(state: State, asked: Sequence[Sequence[str]]) -> dict[str, float]:
    """Ask the agents in turn, each its own questions; the first tenth is a warm-up."""
    times = []
    for at in range(QUERIES):
        number, agent = divmod(at, len(asked))
        memory, own = state.memory(f"a{agent}"), asked[agent]
        start = time.perf_counter()
        await memory.recall(own[number % len(own)], 5)
        if at >= QUERIES // 10:
            times.append(time.perf_counter() - start)
    return percentiles(times)
