"""openai-agents with our adapter: its sessions on Holdfast, beside its own on Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.peers.match import Calls, Line, Stage
from benchmarks.peers.openai_agents import SqlAlchemySessions, session_calls
from benchmarks.peers.servers import holdfast_on

ADD, GET = "add an item to a session (adapter)", "last 20 items of a session (adapter)"


class OpenAiAdapter(SqlAlchemySessions):
    """``HoldfastSession`` beside ``SQLAlchemySession``: the same items by the same methods."""

    name = "openai-agents SQLAlchemySession, by adapter"
    lines = (
        Line(
            ADD,
            "HoldfastSession.add_items",
            "SQLAlchemySession.add_items",
            2.0,
            "one item to one of 8 open sessions, durable on return",
        ),
        Line(
            GET,
            "HoldfastSession.get_items(limit=20)",
            "SQLAlchemySession.get_items(limit=20)",
            3.0,
            "the last 20 of a longer session, as the SDK's own items",
        ),
    )

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """The adapter on Postgres."""
        from holdfast.adapters.openai_agents import HoldfastSession  # noqa: PLC0415 - optional

        count = self.lines[0].calls_of(quick=stage.quick)
        async with holdfast_on(stage.url, "openai adapter") as state:

            def make(name: str) -> Any:
                return HoldfastSession(name, state)

            async with session_calls(make, stage, count) as calls:
                yield dict(zip((ADD, GET), calls.values(), strict=True))
