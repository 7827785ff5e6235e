"""All key names that Holdfast uses in Redis. No other module builds key names.

``hf:{s07}:<tenant>:<kind>:<name>``: the shard is the hash tag, so all keys of a session are on one
node, and a script that uses them runs on Cluster. Names from users are encoded, so they cannot add
``:``, ``{``, ``}``, ``*``, ``?`` or a control character to a key.

========================================  ======  =================================================
key                                       type    what it holds
========================================  ======  =================================================
``hf:{s00}:shards``                       string  how many shards there are; written once
``hf:{sNN}:work``                         set     tenants with something to flush in the shard
``hf:{sNN}:idle``                         zset    idle hot sessions, since when
``hf:{sNN}:<t>:hot``                      stream  the hot log; consumer group ``holdfast``
``hf:{sNN}:<t>:ses:<session>``            hash    a hot session: its grant and last position
``hf:{sNN}:<t>:win:<session>``            list    its window: the newest durable events
``hf:{sNN}:<t>:late:<session>``           list    its unflushed events: turns of the hot log
``hf:{sNN}:<t>:evt:<session>:<event>``    string  an event's position, digest and time
``hf:{sNN}:<t>:warm:<session>``           string  the lock of a session
``hf:{sNN}:<t>:st:<session>``             hash    the state; fields of the user begin with ``=``
``hf:{sNN}:<t>:aside:<session>``          string  the last fallback write applied to it
``hf:{sNN}:<t>:versions``                 string  the last version that a state was given
``hf:{sNN}:<t>:dirty``                    zset    states that are not in the durable store yet
``hf:{sNN}:clean``                        zset    states that are saved, since when
``hf:{sNN}:<t>:removed``                  zset    recently evicted or cleared states, by eviction
                                                  number; the empty name has the last eviction
``hf:{sNN}:<t>:idx:<session>``            hash    message ids, runs and the last number
``hf:{sNN}:<t>:msg:<session>:<agent>``    stream  a transcript; the id of an entry is its number
``hf:{sNN}:<t>:msg:<session>:!<agent>``   stream  the other events of an agent
``hf:{sNN}:<t>:chan:<name>``              stream  a channel; the id of an entry is its number
``hf:{sNN}:<t>:chid:<name>``              hash    the numbers of its events by their ids
``hf:{sNN}:<t>:chex:<name>``              zset    when they expire
``hf:{sNN}:<t>:chno:<name>``              hash    its newest number
========================================  ======  =================================================
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

DEFAULT_SHARDS = 16
MAX_SHARDS = 1024
SHARDS = "hf:{s00}:shards"
_SAFE = re.compile("[A-Za-z0-9_.~-]+").fullmatch
"""Matches text that needs no encoding, as nearly all ids."""


def encode(text: str) -> str:
    """Encode a user's text without characters that are special in a key or pattern, injectively.

    >>> encode("a:b{c}*")
    'a%3Ab%7Bc%7D%2A'
    """
    return text if _SAFE(text) else quote(text, safe="")


@lru_cache(maxsize=1024)
def encode_agent(agent: str) -> str:
    """Encode like ``encode``, with a cache: the same agents are encoded again and again.

    >>> encode_agent("writer/ana")
    'writer%2Fana'
    """
    return encode(agent)


def shard_of(tenant: str, name: str, shards: int) -> int:
    """Return the shard of a session or channel. It is the same in every process and version.

    >>> shard_of("default", "s1", 16)
    0
    """
    return zlib.crc32(f"{tenant}\0{name}".encode()) % shards


@dataclass(frozen=True, slots=True)
class ShardKeys:
    """The keys that a tenant has once per shard.

    >>> ShardKeys.of("acme", 7).dirty
    'hf:{s07}:acme:dirty'
    """

    shard: int
    prefix: str
    versions: str
    dirty: str
    work: str
    clean: str
    removed: str
    tenant: str
    """The tenant's name, encoded for keys."""

    @classmethod
    def of(cls, tenant: str, shard: int) -> ShardKeys:
        """Return the keys of a tenant in a shard."""
        tag = f"hf:{{s{shard:02}}}:"
        prefix = f"{tag}{encode(tenant)}:"
        return cls(
            shard,
            prefix,
            f"{prefix}versions",
            f"{prefix}dirty",
            f"{tag}work",
            f"{tag}clean",
            f"{prefix}removed",
            encode(tenant),
        )


@dataclass(frozen=True, slots=True)
class SessionKeys:
    """The keys of one session, all of them in its shard.

    >>> SessionKeys.of("acme", "s1", 16).state
    'hf:{s09}:acme:st:s1'
    """

    common: ShardKeys
    name: str
    """The session's id, encoded for keys."""

    state: str
    index: str
    messages: str
    """The prefix of the keys of its transcripts."""

    last_fallback: str

    @classmethod
    def of(cls, tenant: str, session: str, shards: int) -> SessionKeys:
        """Return the keys of a session. Those of the last few thousand sessions are cached."""
        return _session_keys(tenant, session, shards)

    def transcript(self, agent: str) -> str:
        """Return the key of one agent's messages."""
        return self.messages + encode_agent(agent)


@lru_cache(maxsize=4096)
def _session_keys(tenant: str, session: str, shards: int) -> SessionKeys:
    common = ShardKeys.of(tenant, shard_of(tenant, session, shards))
    prefix, name = common.prefix, encode(session)
    return SessionKeys(
        common,
        name,
        f"{prefix}st:{name}",
        f"{prefix}idx:{name}",
        f"{prefix}msg:{name}:",
        f"{prefix}aside:{name}",
    )


@dataclass(frozen=True, slots=True)
class HotKeys:
    """The keys of one session's hot log, all of them in its shard.

    >>> HotKeys.of("acme", "s1", 16).log
    'hf:{s09}:acme:hot'
    """

    shard: int
    tenant: str
    """The names of the tenant and the session, encoded for keys."""

    name: str
    prefix: str
    work: str
    idle: str
    log: str
    meta: str
    window: str
    late: str
    lock: str

    @classmethod
    def of(cls, tenant: str, session: str, shards: int) -> HotKeys:
        """Return the keys of a session. Those of the last few thousand sessions are cached."""
        return _hot_keys(tenant, session, shards)

    def event(self, event_id: str) -> str:
        """Return the key under which the position of an event id is stored."""
        return f"{self.prefix}evt:{self.name}:{encode(event_id)}"

    @property
    def member(self) -> str:
        """The session's member name in the sets that all tenants of the shard share."""
        return f"{self.tenant}:{self.name}"


@lru_cache(maxsize=4096)
def _hot_keys(tenant: str, session: str, shards: int) -> HotKeys:
    shard, name = shard_of(tenant, session, shards), encode(session)
    tag = f"hf:{{s{shard:02}}}:"
    prefix = f"{tag}{encode(tenant)}:"
    return HotKeys(
        shard,
        encode(tenant),
        name,
        prefix,
        f"{tag}work",
        f"{tag}idle",
        f"{prefix}hot",
        f"{prefix}ses:{name}",
        f"{prefix}win:{name}",
        f"{prefix}late:{name}",
        f"{prefix}warm:{name}",
    )


@dataclass(frozen=True, slots=True)
class ChannelKeys:
    """The keys of one channel, all of them in its shard.

    >>> ChannelKeys.of("acme", "handovers", 16).events
    'hf:{s12}:acme:chan:handovers'
    """

    events: str
    ids: str
    expiries: str
    newest: str

    @classmethod
    def of(cls, tenant: str, name: str, shards: int) -> ChannelKeys:
        """Return the keys of a channel."""
        prefix = ShardKeys.of(tenant, shard_of(tenant, name, shards)).prefix
        encoded = encode(name)
        return cls(*(f"{prefix}{kind}:{encoded}" for kind in ("chan", "chid", "chex", "chno")))

    def all(self) -> tuple[str, str, str, str]:
        """Return all keys, in the order in which the scripts take them."""
        return self.events, self.ids, self.expiries, self.newest
