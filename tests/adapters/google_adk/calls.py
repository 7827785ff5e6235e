"""Short forms of the calls of a session service, for its tests."""

from __future__ import annotations

from typing import Any

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session
from google.genai import types

from holdfast import State
from holdfast.adapters.google_adk import HoldfastSessionService

APP = "tides"


def event_with(text: str = "", **fields: Any) -> Event:
    delta = fields.pop("delta", {})
    content = types.Content(role="user", parts=[types.Part(text=text)]) if text else None
    return Event(
        invocation_id=fields.pop("invocation_id", "i1"),
        author="user",
        content=content,
        actions=EventActions(state_delta=delta),
        **fields,
    )


def service_on(state: State) -> HoldfastSessionService:
    return HoldfastSessionService(state)


async def create(
    state: State,
    user: str = "ana",
    session: str | None = "s1",
    values: dict[str, Any] | None = None,
) -> Any:
    return await service_on(state).create_session(
        app_name=APP, user_id=user, session_id=session, state=values
    )


async def get(state: State, user: str = "ana", session: str = "s1", **config: Any) -> Any:
    return await service_on(state).get_session(
        app_name=APP,
        user_id=user,
        session_id=session,
        config=GetSessionConfig(**config) if config else None,
    )


def texts(session: Session) -> list[str]:
    return [one.content.parts[0].text for one in session.events if one.content]
