"""Many writers, and a Valkey that dies under them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from holdfast.contracts.channel import Channel
from holdfast.contracts.history import History
from holdfast.contracts.short_term import States
from holdfast.engines.redis.channel import RedisChannels
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.short_term import RedisStates
from holdfast.engines.redis.transcripts import RedisTranscripts
from holdfast.values.channels import ChannelEvent
from holdfast.values.content import ChatMessage
from holdfast.values.errors import TimedOutError, UnavailableError
from holdfast.values.identity import AgentId
from tests.engines.valkey_server import ValkeyCluster, ValkeyServer

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("writer", "ana")
SESSIONS = tuple(f"s{n}" for n in range(4))
ROUND = 400


@pytest.fixture
def own_server() -> Iterator[ValkeyServer]:
    """A server of this test's own, to be killed; what it has acknowledged is on disk."""
    server = ValkeyServer()
    server.start()
    yield server
    server.remove()


class Load:
    """Writers of every kind, and what the server has acknowledged to them, in order."""

    def __init__(self, engine: Redis) -> None:
        self.history = History(RedisTranscripts(engine))
        self.state = States(RedisStates(engine))
        self.channel = Channel(RedisChannels(engine))
        self.messages: dict[str, list[str]] = {session: [] for session in SESSIONS}
        self.patches = dict.fromkeys(SESSIONS, 0)
        self.events: list[str] = []
        self.stopped = asyncio.Event()

    def count(self) -> int:
        """How much was acknowledged."""
        appended = sum(map(len, (*self.messages.values(), self.events)))
        return appended + sum(self.patches.values())

    async def grow(self) -> None:
        """Wait until a good deal more is acknowledged."""
        enough = self.count() + ROUND
        async with asyncio.timeout(60):
            while self.count() < enough:
                await asyncio.sleep(0.01)

    def start(self) -> list[asyncio.Task[None]]:
        """All writers at once."""
        work = [self._publish()]
        for session in SESSIONS:
            work += [self._talk(session), self._patch(session)]
        return [asyncio.create_task(one) for one in work]

    async def _done(self, call: Callable[..., Awaitable[Any]], *args: Any, **how: Any) -> None:
        while True:
            try:
                await call(*args, **how)
            except (UnavailableError, TimedOutError):
                # What the errors say: again, with the same id.
                await asyncio.sleep(0.02)
            else:
                return

    async def _talk(self, session: str) -> None:
        while not self.stopped.is_set():
            message = ChatMessage.user("x" * 200)
            await self._done(self.history.append, ANA, message, session_id=session)
            self.messages[session].append(message.id)

    async def _patch(self, session: str) -> None:
        number = 0
        while not self.stopped.is_set():
            number += 1
            await self._done(self.state.update_state, session, {"n": number})
            self.patches[session] = number

    async def _publish(self) -> None:
        number = 0
        while not self.stopped.is_set():
            number += 1
            await self._done(self.channel.publish, {"n": number}, id=f"e{number}")
            self.events.append(f"e{number}")


async def test_kill_9_of_valkey_under_load_loses_no_acknowledged_write_and_doubles_none(
    own_server: ValkeyServer,
) -> None:
    engine = await Redis.open(own_server.url)
    assert engine.capabilities.level == "fsync"
    load = Load(engine)
    seen: list[ChannelEvent] = []

    async def subscribe() -> None:
        async with aclosing(load.channel.subscribe()) as stream:
            while True:
                seen.append(await anext(stream))

    subscriber = asyncio.create_task(subscribe())
    writers = load.start()
    for _ in range(4):
        await load.grow()
        own_server.kill()
        await asyncio.sleep(random.random() / 5)  # noqa: S311 - any moment will do
        await asyncio.to_thread(own_server.start)
    await load.grow()
    load.stopped.set()
    await asyncio.gather(*writers)

    async with asyncio.timeout(60):
        while not seen or seen[-1].id != load.events[-1]:
            await asyncio.sleep(0.01)
    subscriber.cancel()
    await asyncio.gather(subscriber, return_exceptions=True)

    assert [event.id for event in seen] == load.events
    for session in SESSIONS:
        stored = await load.history.get_messages(ANA, session_id=session)
        assert [one.id for one in stored] == load.messages[session]
        assert [one.seq for one in stored] == list(range(1, len(stored) + 1))
        assert await load.state.get_state(session) == {"n": load.patches[session]}
    await engine.aclose()


async def test_a_call_survives_a_restart_unnoticed_when_it_may_be_repeated(
    own_server: ValkeyServer,
) -> None:
    engine = await Redis.open(own_server.url)
    history = History(RedisTranscripts(engine))
    for at in range(3):
        await history.append(ANA, ChatMessage.user(f"{at}"), session_id="s1")
        own_server.kill()
        own_server.start()
    assert await history.count_messages(ANA, session_id="s1") == 3
    await engine.aclose()


async def test_a_server_that_stays_away_is_unavailable_and_nothing_was_written(
    own_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engines.redis.engine.RETRY_SECONDS", 0.5)
    engine = await Redis.open(own_server.url)
    state = States(RedisStates(engine))
    await state.set_state("s1", {"n": 1})
    own_server.stop()
    for call in (state.get_state("s1"), state.update_state("s1", {"n": 2})):
        with pytest.raises(UnavailableError):
            await call
    own_server.start()
    assert await state.get_state("s1") == {"n": 1}
    await engine.aclose()


async def test_a_cluster_whose_node_is_killed_loses_and_doubles_nothing() -> None:
    nodes = ValkeyCluster()
    try:
        nodes.start()
        engine = await Redis.open(nodes.url)
        history = History(RedisTranscripts(engine))
        sessions = [f"s{n}" for n in range(12)]
        for round_of, node in enumerate((None, nodes.servers[0])):
            if node is not None:
                node.kill()
            writes = [
                asyncio.create_task(
                    history.append(ANA, ChatMessage.user(f"{round_of}"), session_id=session)
                )
                for session in sessions
            ]
            if node is not None:
                await asyncio.to_thread(node.start)
            await asyncio.gather(*writes)
        for session in sessions:
            stored = await history.get_messages(ANA, session_id=session)
            assert [one.text for one in stored] == ["0", "1"]
        await engine.aclose()
    finally:
        nodes.remove()
