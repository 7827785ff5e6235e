"""Measures how long a client waits when its Postgres is killed while it works."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

from holdfast.contracts.history import History
from holdfast.engines.postgres.embedded import EmbeddedPostgres
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.transcripts import PostgresTranscripts
from holdfast.values.content import ChatMessage
from holdfast.values.errors import EngineError
from holdfast.values.identity import AgentId

AGENT = AgentId("bench", "a1")


async def after_kill(folder: Path) -> float:
    """Return the seconds from kill -9 of a server process to the client's next acknowledged append.

    The kill hits one backend, so the server ends all of them and recovers from its WAL. The client
    detects it, waits and reconnects without help.
    """
    embedded = await EmbeddedPostgres.open(folder)
    try:
        engine = await Postgres.open(embedded.url, auto_migrate=True, max_connections=2)
        try:
            history = History(PostgresTranscripts(engine, tenant="bench"))
            for _ in range(50):
                await history.append(AGENT, ChatMessage.user("before"), session_id="s")
            async with engine.connection(writes=False) as connection:
                victim = connection.get_server_pid()
            start = time.perf_counter()
            os.kill(victim, signal.SIGKILL)
            message = ChatMessage.user("after")
            deadline = start + 60
            while True:
                try:
                    await history.append(AGENT, message, session_id="s")
                    return time.perf_counter() - start
                except EngineError:
                    if time.perf_counter() > deadline:
                        raise
                    await asyncio.sleep(0.01)
        finally:
            await engine.aclose()
    finally:
        await embedded.aclose()
