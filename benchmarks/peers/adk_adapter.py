"""google-adk with our adapter: its session service on Holdfast, beside its own on Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.peers.google_adk import AdkSessions, service_calls
from benchmarks.peers.match import Calls, Line, Stage
from benchmarks.peers.servers import holdfast_on

APPEND, GET = "append an event (adapter)", "a session with its last 20 events (adapter)"


class AdkAdapter(AdkSessions):
    """``HoldfastSessionService`` beside ``DatabaseSessionService``, by the same methods.

    The same events. Both compare the session with the one that the caller saw.
    """

    name = "google-adk DatabaseSessionService, by adapter"
    app = "adapter"
    lines = (
        Line(
            APPEND,
            "HoldfastSessionService.append_event",
            "DatabaseSessionService.append_event",
            2.0,
            "one event to one of 8 open sessions, durable on return; theirs with its own engine's "
            "defaults, which ping a connection before use",
        ),
        Line(
            GET,
            "HoldfastSessionService.get_session(num_recent_events=20)",
            "DatabaseSessionService.get_session(num_recent_events=20)",
            3.0,
            "the last 20 events of a longer session, and the states of session, user and app",
        ),
    )

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """The adapter on Postgres."""
        from holdfast.adapters.google_adk import HoldfastSessionService  # noqa: PLC0415 - optional

        async with holdfast_on(stage.url, "adk adapter") as state:
            yield await service_calls(HoldfastSessionService(state), self, stage)
