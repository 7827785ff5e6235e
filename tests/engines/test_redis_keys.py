"""What stands in Redis: keys that no user can bend, one shard for each script."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files

import pytest

from holdfast.contracts.channel import Channel
from holdfast.contracts.history import History
from holdfast.contracts.short_term import States
from holdfast.engines.redis.channel import RedisChannels
from holdfast.engines.redis.engine import Redis
from holdfast.engines.redis.keys import HotKeys, SessionKeys, encode, shard_of
from holdfast.engines.redis.short_term import RedisStates
from holdfast.engines.redis.transcripts import RedisTranscripts
from holdfast.testing.hostile import KEPT, TEXTS
from holdfast.values.content import ChatMessage
from holdfast.values.errors import ConfigError
from holdfast.values.identity import AgentId
from tests.engines.redis_engine import bare, engine

HOSTILE = [text.value for text in TEXTS if text.as_id is KEPT]
WELL_FORMED = re.compile(rb"hf:\{s\d\d\}(:[A-Za-z0-9_.~%-]*)*")


@pytest.mark.parametrize("name", [*HOSTILE, "a:b{c}*\n", "a\0b"], ids=repr)
def test_user_text_is_inert_and_never_the_same_for_two(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.~%-]+", encode(name))
    assert len({encode(other) for other in (name, f"{name}%", f"%{name}x")}) == 3


def test_sessions_spread_over_the_shards() -> None:
    found = Counter(shard_of("default", f"session-{n}", 16) for n in range(16_000))
    assert set(found) == set(range(16))
    assert max(found.values()) < 1200


def test_all_keys_of_a_session_carry_one_tag() -> None:
    keys = SessionKeys.of("acme", "{s00}", 16)
    own = (keys.state, keys.index, keys.transcript("{y}"), keys.last_fallback)
    shared = (keys.common.dirty, keys.common.versions)
    hot = HotKeys.of("acme", "{s00}", 16)
    flushed = (hot.log, hot.meta, hot.window, hot.late, hot.lock, hot.event("{x}"))
    tags = [tag for key in (*own, *shared, *flushed) for tag in re.findall(r"\{(.*?)\}", key)]
    assert len(tags) == 12
    assert len(set(tags)) == 1


@pytest.mark.asyncio
async def test_hostile_names_stay_inert_in_every_key() -> None:
    async with engine() as opened, bare() as client:
        for name in HOSTILE:
            agent = AgentId.parse(name)
            message = ChatMessage.user("x", id=name)
            await History(RedisTranscripts(opened, tenant=name)).append(
                agent, message, session_id=name, run_id=name
            )
            await States(RedisStates(opened, tenant=name)).set_state(
                name, {name: 1}, ttl_seconds=60
            )
            await Channel(RedisChannels(opened, tenant=name), name=name).publish({}, id=name)
        keys = await client.keys("*")
        assert [key for key in keys if not WELL_FORMED.fullmatch(key)] == []
        assert all(key.count(b"{") == key.count(b"}") == 1 for key in keys)
        for name in HOSTILE:
            history = History(RedisTranscripts(opened, tenant=name))
            assert await history.count_messages(AgentId.parse(name), session_id=name) == 1
            assert await States(RedisStates(opened, tenant=name)).get_state(name) == {name: 1}


@pytest.mark.asyncio
async def test_the_number_of_shards_is_written_once_and_another_one_is_refused() -> None:
    async with engine(shards=4) as opened, bare() as client:
        assert await client.get("hf:{s00}:shards") == b"4"
        url = f"redis://127.0.0.1:{client.connection_pool.connection_kwargs['port']}"
        with pytest.raises(ConfigError, match="divided into 4 shards, not 16"):
            await Redis.open(url)
        with pytest.raises(ConfigError, match="shards must be 1 to 1024"):
            await Redis.open(url, shards=0)
        async with engine(url, shards=4) as again:
            await States(RedisStates(opened)).set_state("s1", {"a": 1})
            assert await States(RedisStates(again)).get_state("s1") == {"a": 1}


def test_no_script_trims_a_stream_by_length() -> None:
    folder = files("holdfast.engines.redis").joinpath("lua")
    texts = {item.name: item.read_text() for item in folder.iterdir()}
    assert len(texts) >= 10
    assert [name for name, text in texts.items() if "MAXLEN" in text or "XTRIM" in text] == []
    assert [name for name, text in texts.items() if not text.startswith("-- ")] == []
