"""Every key that Holdfast has in Redis is made here, and nowhere else.

``hf:{s07}:<tenant>:<kind>:<name>``: the tag of the shard is the only thing in braces, so that all
keys of a session live on one node and a script that touches them runs on Cluster. What a user
names is encoded: neither ``:``, ``{``, ``}``, ``*``, ``?`` nor a control character can come from
outside.

========================================  ======  =================================================
key                                       type    what it holds
========================================  ======  =================================================
``hf:{s00}:shards``                       string  how many shards there are; written once
``hf:{sNN}:work``                         set     tenants with something to flush in the shard
``hf:{sNN}:idle``                         zset    hot sessions that rest, since when
``hf:{sNN}:<t>:hot``                      stream  the hot log; consumer group ``holdfast``
``hf:{sNN}:<t>:ses:<session>``            hash    a hot session: its grant, and how far it is
``hf:{sNN}:<t>:win:<session>``            list    its window: what is durable of what was said last
``hf:{sNN}:<t>:late:<session>``           list    what is not durable yet: turns of the hot log
``hf:{sNN}:<t>:evt:<session>:<event>``    string  an event's position, digest and time
``hf:{sNN}:<t>:warm:<session>``           string  who is warming a session
``hf:{sNN}:<t>:st:<session>``             hash    the state; fields of the user begin with ``=``
``hf:{sNN}:<t>:aside:<session>``          string  the last write to it that came from Postgres
``hf:{sNN}:<t>:versions``                 string  the last version that a state was given
``hf:{sNN}:<t>:dirty``                    zset    states that are not in the durable store yet
``hf:{sNN}:clean``                        zset    states that are, since when
``hf:{sNN}:<t>:removed``                  zset    states evicted or cleared lately, by the number of
                                                  that; under the empty name the last eviction
``hf:{sNN}:<t>:idx:<session>``            hash    message ids, runs and the last number
``hf:{sNN}:<t>:msg:<session>:<agent>``    stream  a transcript; the id of an entry is its number
``hf:{sNN}:<t>:msg:<session>:!<agent>``   stream  what an agent recorded that is no message
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
"""What is encoded as it is, as nearly all ids are."""


def encode(text: str) -> str:
    """User text in letters that mean nothing in a key or a pattern; equal only for equal text.

    >>> encode("a:b{c}*")
    'a%3Ab%7Bc%7D%2A'
    """
    return text if _SAFE(text) else quote(text, safe="")


@lru_cache(maxsize=1024)
def encode_agent(agent: str) -> str:
    """As ``encode``, for what is named again and again.

    >>> encode_agent("writer/ana")
    'writer%2Fana'
    """
    return encode(agent)


def shard_of(tenant: str, name: str, shards: int) -> int:
    """Where a session or a channel lives: the same in every process and version.

    >>> shard_of("default", "s1", 16)
    0
    """
    return zlib.crc32(f"{tenant}\0{name}".encode()) % shards


@dataclass(frozen=True, slots=True)
class ShardKeys:
    """The keys that a tenant has once in a shard.

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
    """The tenant as it stands in keys."""

    @classmethod
    def of(cls, tenant: str, shard: int) -> ShardKeys:
        """The keys of a tenant in a shard."""
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
    """The session as it stands in keys."""

    state: str
    index: str
    messages: str
    """The beginning of the keys of its transcripts."""

    aside: str

    @classmethod
    def of(cls, tenant: str, session: str, shards: int) -> SessionKeys:
        """The keys of a session; those of the last few thousand are at hand."""
        return _session_keys(tenant, session, shards)

    def transcript(self, agent: str) -> str:
        """The messages of one agent."""
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
    """The tenant and the session as they stand in keys."""

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
        """The keys of a session; those of the last few thousand are at hand."""
        return _hot_keys(tenant, session, shards)

    def event(self, event_id: str) -> str:
        """Where it is remembered that an event was seen."""
        return f"{self.prefix}evt:{self.name}:{encode(event_id)}"

    @property
    def member(self) -> str:
        """The session among all tenants' of the shard."""
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
        """The keys of a channel."""
        prefix = ShardKeys.of(tenant, shard_of(tenant, name, shards)).prefix
        encoded = encode(name)
        return cls(*(f"{prefix}{kind}:{encoded}" for kind in ("chan", "chid", "chex", "chno")))

    def all(self) -> tuple[str, str, str, str]:
        """In the order in which the scripts take them."""
        return self.events, self.ids, self.expiries, self.newest
