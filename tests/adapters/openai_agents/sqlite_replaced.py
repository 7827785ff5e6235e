"""A pytest plugin: the SDK's own tests get ``HoldfastSession`` where they make a ``SQLiteSession``.

A database file is a tenant, so that sessions of one file see each other and no others.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import agents
import agents.memory

from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.blocking import Portal
from holdfast.values.ids import new_ref

PORTAL = Portal.open("memory:")


class ReplacedSession(HoldfastSession):
    """Takes what a ``SQLiteSession`` takes."""

    def __init__(
        self,
        session_id: str,
        db_path: str | Path = ":memory:",
        sessions_table: str = "agent_sessions",
        messages_table: str = "agent_messages",
        session_settings: Any = None,
    ) -> None:
        del sessions_table, messages_table
        name = str(db_path)
        tenant = new_ref() if name == ":memory:" else hashlib.sha256(name.encode()).hexdigest()

        async def view() -> Any:
            await asyncio.sleep(0)
            return PORTAL.state.for_tenant(tenant)

        super().__init__(session_id, PORTAL.run(view()), session_settings=session_settings)

    def close(self) -> None:
        """Nothing to close: the state is everybody's."""


agents.SQLiteSession = agents.memory.SQLiteSession = ReplacedSession


def pytest_unconfigure() -> None:
    """Close the state."""
    PORTAL.close()
