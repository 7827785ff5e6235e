"""google-adk: the events of a session on Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.peers.match import NOT_SLOWER, Calls, Line, Peer, Stage
from benchmarks.peers.openai_agents import (
    APPEND,
    LAST,
    SESSIONS,
    sqlalchemy_url,
    transcripts,
)
from benchmarks.peers.workload import Said


class AdkSessions(Peer):
    """``DatabaseSessionService`` on asyncpg, with the engine that it makes by itself.

    The same: a turn is added to a session. Theirs also compares the session's time of update with
    the one the caller saw, ours numbers the turn within its session; both lock the session for it.
    """

    name = "google-adk DatabaseSessionService"
    app = "bench"
    packages = ("google-adk", "sqlalchemy", "asyncpg", "greenlet")
    install = "google-adk sqlalchemy asyncpg greenlet"
    lines = (
        Line(
            f"{APPEND} (google-adk)",
            "history.append",
            "DatabaseSessionService.append_event",
            8.0,
            "one turn to one of 8 open sessions, durable on return; theirs with its own engine's "
            "defaults, which ping a connection before use",
        ),
        Line(
            f"{LAST} (google-adk)",
            "history.get_messages(last=20)",
            "DatabaseSessionService.get_session(num_recent_events=20)",
            NOT_SLOWER,
            "the last 20 of a longer session; theirs reads the states of session, user and app "
            "with it, which it has no way to leave out",
        ),
    )

    @asynccontextmanager
    async def ours(self, stage: Stage) -> AsyncIterator[Calls]:
        """Transcripts on Postgres."""
        count = self.lines[0].calls_of(quick=stage.quick)
        async with transcripts(stage.url, stage, count, "adk") as calls:
            yield {f"{name} (google-adk)": call for name, call in calls.items()}

    @asynccontextmanager
    async def theirs(self, stage: Stage) -> AsyncIterator[Calls]:
        """The same on theirs."""
        from google.adk.sessions import DatabaseSessionService  # noqa: PLC0415 - optional

        async with DatabaseSessionService(sqlalchemy_url(stage.url)) as service:
            yield await service_calls(service, self, stage)


async def service_calls(service: Any, peer: AdkSessions, stage: Stage) -> Calls:
    """Fill a session service: one session to read, and eight that are written in turn.

    ::

        calls = await service_calls(service, AdkSessions(), stage)
    """
    from google.adk.sessions.base_session_service import GetSessionConfig  # noqa: PLC0415 - optional

    who = {"app_name": peer.app, "user_id": "u1"}
    append, get = peer.lines
    read = await service.create_session(**who, session_id="read")
    for one in stage.workload.turns(stage.length):
        await service.append_event(read, _event(one))
    names = [f"w{at}" for at in range(SESSIONS)]
    written = [await service.create_session(**who, session_id=name) for name in names]
    # Made beforehand; its time is when it is made, and only has to be in order.
    count = append.calls_of(quick=stage.quick)
    made = iter([_event(one) for one in stage.workload.turns(count)])
    recent = GetSessionConfig(num_recent_events=20)
    return {
        append.operation: lambda n: service.append_event(written[n % SESSIONS], next(made)),
        get.operation: lambda _n: service.get_session(**who, session_id="read", config=recent),
    }


def _event(one: Said) -> Any:
    from google.adk.events import Event  # noqa: PLC0415 - optional
    from google.genai.types import Content, Part  # noqa: PLC0415

    role = "model" if one.role == "assistant" else "user"
    content = Content(role=role, parts=[Part(text=one.text)])
    return Event(author=one.role, invocation_id="i1", content=content)
