"""The engine itself: addresses, what it reports of the server, what it repeats and what not."""

from __future__ import annotations

import asyncio
import signal
from typing import Any
from urllib.parse import unquote

import pytest
import redis.asyncio
from redis.asyncio.connection import SSLConnection

from holdfast.contracts.channel import Channel
from holdfast.contracts.history import History
from holdfast.contracts.short_term import States
from holdfast.engines.redis.addresses import cluster_client, connection_pool
from holdfast.engines.redis.capabilities import Capabilities
from holdfast.engines.redis.channel import RedisChannels
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.short_term import RedisStates
from holdfast.engines.redis.transcripts import RedisTranscripts
from holdfast.values.content import ChatMessage
from holdfast.values.errors import (
    BackPressureError,
    ConfigError,
    TimedOutError,
    UnavailableError,
    UnknownSchemeError,
)
from holdfast.values.identity import AgentId
from tests.engines.redis import cluster, server
from tests.engines.redis_engine import Wire, bare, engine, own_server

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA = AgentId("", "ana")


async def test_a_server_is_opened_by_every_form_of_url() -> None:
    async with engine() as by_tcp:
        await States(RedisStates(by_tcp)).set_state("s1", {"a": 1})
        async with engine(f"unix://{server().socket}?db=0") as by_socket:
            assert await States(RedisStates(by_socket)).get_state("s1") == {"a": 1}
    async with engine(cluster().url) as clustered:
        assert clustered.capabilities.mode == "cluster"
        await clustered.ping()
    tls = connection_pool("rediss://:secret@cache.example.org:6390/2")
    assert issubclass(tls.connection_class, SSLConnection)
    assert tls.connection_kwargs["db"] == 2


@pytest.mark.parametrize(
    "url",
    [
        "redis://:se/cret@host",
        "redis://host:se-cret",
        "redis+cluster://:se/cret@a:1",
        "redis+cluster://a:b:se-cret",
    ],
)
async def test_a_url_that_cannot_be_read_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await Redis.open(url)
    assert "cret" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_an_unknown_scheme_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownSchemeError, match="redis://, rediss://"):
        await Redis.open("mysql://host")


async def test_a_wrong_password_is_configuration_and_is_not_repeated() -> None:
    with own_server("--requirepass", "right") as own:
        with pytest.raises(ConfigError, match="password"):
            await Redis.open(f"redis://:wrong@127.0.0.1:{own.port}")
        async with engine(f"redis://:right@127.0.0.1:{own.port}") as opened:
            await opened.ping()


async def test_a_single_server_opened_as_a_cluster_says_what_to_write() -> None:
    with pytest.raises(ConfigError, match="redis://"):
        await Redis.open(f"redis+cluster://127.0.0.1:{server().port}")


@pytest.mark.parametrize(
    ("settings", "level", "durability", "warned"),
    [
        ({"appendfsync": "always"}, "fsync", "before it is acknowledged", "maxmemory is not set"),
        ({"appendfsync": "everysec"}, "hot", "up to a second", "set `appendfsync always`"),
        ({"appendfsync": "no"}, "hot", "not written yet", "set `appendfsync always`"),
        (
            {"appendfsync": "always", "no-appendfsync-on-rewrite": "yes"},
            "hot",
            "while the log is rewritten",
            "set `no-appendfsync-on-rewrite no`",
        ),
        ({"appendonly": "no"}, "none", "lost when the server stops", "set `appendonly yes`"),
        ({"appendonly": "no", "save": "60 1"}, "none", "last snapshot", "set `appendonly yes`"),
        (
            {"appendfsync": "always", "maxmemory-policy": "volatile-lru"},
            "fsync",
            "on disk",
            "set `maxmemory-policy noeviction`",
        ),
    ],
    ids=str,
)
async def test_the_settings_of_the_server_are_told_in_words(
    settings: dict[str, str], level: str, durability: str, warned: str
) -> None:
    with own_server() as own:
        async with bare(own.url) as client:
            for name, value in settings.items():
                await client.config_set(name, value)
        async with engine(own.url) as opened:
            about = opened.capabilities
            assert (about.product, about.mode, about.level) == ("Valkey", "standalone", level)
            assert about.version.startswith("9.")
            assert durability in about.durability
            assert any(warned in warning for warning in about.warnings)


async def test_a_server_that_hides_its_settings_is_unproved() -> None:
    with own_server() as own:
        async with bare(own.url) as client:
            await client.acl_setuser(
                "app", enabled=True, passwords=["+secret"], keys=["*"], channels=["*"],
                commands=["+@all", "-config"],
            )  # fmt: skip
        async with engine(f"redis://app:secret@127.0.0.1:{own.port}") as opened:
            assert opened.capabilities.level == "unproved"
            assert "CONFIG is refused" in opened.capabilities.durability
            assert "CONFIG GET" in opened.capabilities.warnings[0]


async def test_a_server_that_evicts_what_was_acknowledged_is_refused() -> None:
    with own_server("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") as own:
        with pytest.raises(ConfigError, match="set `maxmemory-policy noeviction`"):
            await Redis.open(own.url)
        async with engine(own.url, allow_unsafe=True) as opened:
            assert opened.capabilities.unsafe == "maxmemory-policy is allkeys-lru"


async def test_a_full_server_pushes_back_and_nothing_is_written() -> None:
    with own_server() as own:
        async with engine(own.url) as opened, bare(own.url) as client:
            state, history = States(RedisStates(opened)), History(RedisTranscripts(opened))
            await state.set_state("s1", {"a": 1})
            await client.config_set("maxmemory", "1")
            calls: list[Any] = [
                lambda: state.set_state("s1", {"a": 2}),
                lambda: state.update_state("s1", {"b": 2}),
                lambda: history.append(ANA, ChatMessage.user("x"), session_id="s1"),
                lambda: Channel(RedisChannels(opened)).publish({}),
            ]
            for call in calls:
                with pytest.raises(BackPressureError, match="maxmemory"):
                    await call()
            await client.config_set("maxmemory", "0")
            assert await state.get_state("s1") == {"a": 1}
            assert await history.count_messages(ANA, session_id="s1") == 0
            assert await Channel(RedisChannels(opened)).tail() == "0"


async def test_a_closed_engine_says_so() -> None:
    for url in ("", cluster().url):
        async with engine(url) as opened:
            await opened.aclose()
            for call in (
                States(RedisStates(opened)).get_state("s1"),
                States(RedisStates(opened)).set_state("s1", {}),
                Channel(RedisChannels(opened)).read(),
            ):
                with pytest.raises(ConfigError, match="closed"):
                    await call


async def test_a_borrowed_client_stays_open() -> None:
    assert server().ask("FLUSHALL") == "+OK"
    client = redis.asyncio.Redis(port=server().port)
    opened = await Redis.from_client(client)
    await States(RedisStates(opened)).set_state("s1", {"a": 1})
    await opened.aclose()
    assert await client.ping()
    await client.aclose()


async def test_a_server_that_has_forgotten_the_scripts_gets_them_again() -> None:
    async with engine() as opened, bare() as client:
        state, channel = States(RedisStates(opened)), Channel(RedisChannels(opened))
        for at in range(3):
            await client.script_flush()
            await state.update_state("s1", {f"k{at}": at})
            await client.script_flush()
            assert len(await channel.read()) == at
            await client.script_flush()
            await channel.publish({"n": at})
        assert await state.get_state("s1") == {"k0": 0, "k1": 1, "k2": 2}


async def test_a_lost_answer_doubles_nothing_that_has_an_id() -> None:
    async with Wire().between(server().port) as wire, engine() as around:
        async with engine(wire.url) as opened:
            history, channel = History(RedisTranscripts(opened)), Channel(RedisChannels(opened))
            for at in range(3):
                wire.lose = 1
                await history.append(ANA, ChatMessage.user(f"{at}"), session_id="s1")
                wire.lose = 1
                await channel.publish({"n": at})
        assert await History(RedisTranscripts(around)).count_messages(ANA, session_id="s1") == 3
        assert [one.event["n"] for one in await Channel(RedisChannels(around)).read()] == [0, 1, 2]


async def test_a_lost_answer_to_a_write_without_an_id_is_told_and_not_repeated() -> None:
    async with (
        Wire().between(server().port) as wire,
        engine() as around,
        engine(wire.url) as opened,
    ):
        state, others = States(RedisStates(opened)), States(RedisStates(around))
        await state.set_state("s1", {"n": 0})
        before = (await others.snapshot("s1")).version
        wire.lose = 1
        with pytest.raises(TimedOutError, match="the response was lost"):
            await state.update_state("s1", {"n": 1})
        after = await others.snapshot("s1")
        assert (after.state, after.version > before) == ({"n": 1}, True)
        wire.lose = 1
        assert await state.get_state("s1", keys=["n"]) == {"n": 1}


async def test_a_server_that_does_not_answer_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.engines.redis.engine.RETRY_SECONDS", 0.5)
    limits = {"command_timeout_seconds": 0.4, "connect_timeout_seconds": 0.4}
    with own_server() as own:
        async with engine(own.url, **limits) as opened:
            state = States(RedisStates(opened))
            await state.set_state("s1", {"n": 0})
            assert own.process is not None
            own.process.send_signal(signal.SIGSTOP)
            with pytest.raises(TimedOutError, match=r"no answer in 0\.4 s"):
                await state.update_state("s1", {"n": 1})
            with pytest.raises(UnavailableError):
                await state.get_state("s1")
            own.process.send_signal(signal.SIGCONT)
            assert await state.get_state("s1", keys=["n"]) in ({"n": 0}, {"n": 1})


async def test_many_calls_share_few_connections() -> None:
    async with engine(max_connections=2) as opened, bare() as client:
        state = States(RedisStates(opened))
        await asyncio.gather(*(state.update_state("s1", {f"k{n}": n}) for n in range(200)))
        assert len(await state.get_state("s1")) == 200
        mine = [one for one in await client.client_list() if one["cmd"] != "client|list"]
        assert len([one for one in mine if one["name"] == "" and one["db"] == "0"]) <= 8


async def test_cancelled_calls_leave_no_answer_behind_for_others() -> None:
    async with engine(max_connections=2) as opened:
        state = States(RedisStates(opened))
        for n in range(50):
            await state.set_state(f"s{n}", {"n": n})
        for _ in range(20):
            calls = [asyncio.create_task(state.get_state(f"s{n}", keys=["n"])) for n in range(50)]
            await asyncio.sleep(0)
            for call in calls[::3]:
                call.cancel()
            answers = await asyncio.gather(*calls, return_exceptions=True)
            for n, answer in enumerate(answers):
                assert answer == {"n": n} or isinstance(answer, asyncio.CancelledError)


async def test_all_connections_busy_is_unavailable_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.engines.redis.engine.RETRY_SECONDS", 0.5)
    limits = {"command_timeout_seconds": 0.2, "connect_timeout_seconds": 0.2}
    with own_server() as own:
        async with engine(own.url, max_connections=1, **limits) as opened:
            assert own.process is not None
            own.process.send_signal(signal.SIGSTOP)
            state = States(RedisStates(opened))
            answers = await asyncio.gather(
                *(state.update_state("s1", {"n": n}) for n in range(3)), return_exceptions=True
            )
            own.process.send_signal(signal.SIGCONT)
            assert {type(answer) for answer in answers} <= {TimedOutError, UnavailableError}


async def test_a_cluster_is_as_durable_as_its_weakest_server() -> None:
    weak = Capabilities("Valkey", "9.1.0", "cluster", appendonly="no")
    assert "none" in weak.durability
    port = cluster().servers[1].port
    async with bare(f"redis://127.0.0.1:{port}") as client:
        await client.config_set("appendonly", "no")
        async with engine(cluster().url) as opened:
            assert opened.capabilities.level == "none"
        await client.config_set("appendonly", "yes")


async def test_credentials_and_nodes_of_a_cluster_come_from_its_url() -> None:
    client = cluster_client("redis+cluster://app:pa%2Fss@a:1,b:2")
    assert client.connection_kwargs["password"] == unquote("pa%2Fss")
    assert {node.port for node in client.nodes_manager.startup_nodes.values()} == {1, 2}
