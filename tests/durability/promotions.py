"""A primary of Valkey whose replica is promoted, although it is behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import holdfast
from holdfast import AgentId, ChatMessage, Settings, State
from holdfast.testing.valkey_server import ValkeyServer
from tests.engines.postgres_database import empty_database

ANA = AgentId("writer", "ana")
LIMIT_SECONDS = 120.0
COMMITTED = Settings(auto_migrate=True, ack_level="committed", background=False)


async def in_sync(primary: ValkeyServer, replica: ValkeyServer) -> None:
    """Wait until the replica has what the primary has."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while offset_of(replica, "slave_repl_offset") != offset_of(primary, "master_repl_offset"):
            await asyncio.sleep(0.01)


def offset_of(server: ValkeyServer, name: str) -> str:
    """A field of the server's report about replication."""
    about = dict(
        line.split(":", 1) for line in server.read("INFO replication").split() if ":" in line
    )
    return about.get(name, "none")


async def say(state: State, number: int) -> None:
    """One message and one patch."""
    await state.history.append(ANA, ChatMessage.user(f"{number}"), session_id="s1")
    await state.short_term.update_state("s1", {f"k{number}": number})


async def said(state: State, last: int) -> list[str]:
    """The last messages."""
    found = await state.history.get_messages(ANA, session_id="s1", recent_limit=last)
    return [one.text for one in found]


@asynccontextmanager
async def promoted_behind(
    pair: tuple[ValkeyServer, ValkeyServer],
) -> AsyncIterator[tuple[str, State]]:
    """A state on a promoted replica, which lacks the last two of four writes."""
    primary, replica = pair
    async with empty_database() as url:
        async with holdfast.open(url, redis=primary.url, settings=COMMITTED) as before:
            assert before.ops.hybrid.hot is not None
            for number in (1, 2):
                await say(before, number)
            await in_sync(primary, replica)
            # It follows nobody, and is read-only, until it is promoted.
            assert replica.ask("REPLICAOF 127.0.0.1 1") == "+OK"
            for number in (3, 4):
                await say(before, number)
            primary.kill()
        assert replica.ask("REPLICAOF NO ONE") == "+OK"
        async with holdfast.open(url, redis=replica.url, settings=COMMITTED) as after:
            yield url, after
