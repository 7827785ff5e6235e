"""The configuration: read from the environment into one frozen object."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dotenv import dotenv_values

from holdfast.contracts.short_term import MAX_VERSIONS
from holdfast.values.errors import ConfigError, UnknownSchemeError
from holdfast.values.limits import DEFAULT_LIMITS, Limits
from holdfast.wiring.masking import mask_url
from holdfast.wiring.notices import notice
from holdfast.wiring.secret_files import BY_FILE, with_secret_files

STORAGE_TYPES = ("memory", "embedded", "postgres")
ACK_LEVELS = ("", "hot", "fsync", "committed")
REDIS_LEVELS = ("", "hot", "fsync")

_NAMES = {
    "storage_type": "STORAGE_TYPE",
    "database_url": "DATABASE_URL",
    "redis_url": "REDIS_URL",
    "blob_url": "BLOB_URL",
    "directory": "HOLDFAST_DIR",
    "tenant": "HOLDFAST_TENANT",
    "blob_ttl_seconds": "HOLDFAST_BLOB_TTL_SECONDS",
    "channel_retention_seconds": "HOLDFAST_CHANNEL_RETENTION_SECONDS",
    "max_connections": "HOLDFAST_MAX_CONNECTIONS",
    "command_timeout_seconds": "HOLDFAST_COMMAND_TIMEOUT_SECONDS",
    "pooler": "HOLDFAST_POOLER",
    "auto_migrate": "HOLDFAST_AUTO_MIGRATE",
    "allow_unsafe": "HOLDFAST_ALLOW_UNSAFE",
    "graph": "HOLDFAST_GRAPH",
    "history_ttl_seconds": "HOLDFAST_HISTORY_TTL_SECONDS",
    "state_ttl_seconds": "HOLDFAST_STATE_TTL_SECONDS",
    "state_versions": "HOLDFAST_STATE_VERSIONS",
    "hot_state_seconds": "HOLDFAST_HOT_STATE_SECONDS",
    "redis_shards": "HOLDFAST_REDIS_SHARDS",
    "ack_level": "HOLDFAST_ACK_LEVEL",
    "redis_level": "HOLDFAST_REDIS_LEVEL",
    "background": "HOLDFAST_BACKGROUND",
    "soft_mark": "HOLDFAST_SOFT_MARK",
    "hard_mark": "HOLDFAST_HARD_MARK",
    "embedder": "HOLDFAST_EMBEDDER",
    "embedder_key": "HOLDFAST_EMBEDDER_KEY",
    "max_value_bytes": "HOLDFAST_MAX_VALUE_BYTES",
    "max_filter_terms": "HOLDFAST_MAX_FILTER_TERMS",
    "max_query_words": "HOLDFAST_MAX_QUERY_WORDS",
    "max_walk_depth": "HOLDFAST_MAX_WALK_DEPTH",
    "max_walk_entities": "HOLDFAST_MAX_WALK_ENTITIES",
    "search_timeout_seconds": "HOLDFAST_SEARCH_TIMEOUT_SECONDS",
    "dedupe_message_ids": "HOLDFAST_DEDUPE_MESSAGE_IDS",
    "push_allow_private": "HOLDFAST_PUSH_ALLOW_PRIVATE",
    "studio_secret": "HOLDFAST_STUDIO_SECRET",
    "receipt_key": "HOLDFAST_RECEIPT_KEY",
    "seal": "HOLDFAST_SEAL",
    "keys": "HOLDFAST_KEYS",
    "seal_vectors": "HOLDFAST_SEAL_VECTORS",
    "otel": "HOLDFAST_OTEL",
    "otel_tenant": "HOLDFAST_OTEL_TENANT",
}
_LONGEST_STATEMENT = 2_147_483
"""Maximum seconds: Postgres stores a statement timeout as milliseconds in 32 bits."""
_SWITCH = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """All settings of the environment; secrets are masked in its repr.

    >>> Settings(database_url="postgresql://ana:s3cret@db/main")
    Settings(database_url='postgresql://ana:***@db/main')
    """

    storage_type: str = ""
    """``STORAGE_TYPE``: memory, embedded or postgres; empty: as the other variables imply."""
    database_url: str = ""
    """``DATABASE_URL``: a Postgres server; alone it implies postgres."""
    redis_url: str = ""
    """``REDIS_URL``: a Redis or Valkey server for the hot path."""
    blob_url: str = ""
    """``BLOB_URL``: an object store for blobs."""
    directory: str = ".holdfast"
    """``HOLDFAST_DIR``: the folder of embedded Postgres; alone it implies embedded."""
    tenant: str = "default"
    """``HOLDFAST_TENANT``: the tenant whose data is used."""
    blob_ttl_seconds: float = 86_400
    """``HOLDFAST_BLOB_TTL_SECONDS``: how long an unpinned blob lives."""
    channel_retention_seconds: float = 604_800
    """``HOLDFAST_CHANNEL_RETENTION_SECONDS``: how long a channel keeps an event."""
    max_connections: int = 10
    """``HOLDFAST_MAX_CONNECTIONS``: maximum connections of a process to Postgres."""
    command_timeout_seconds: float = 60
    """``HOLDFAST_COMMAND_TIMEOUT_SECONDS``: timeout of a statement on Postgres."""
    pooler: bool = False
    """``HOLDFAST_POOLER``: the connection goes through a transaction pooler such as PgBouncer."""
    auto_migrate: bool = False
    """``HOLDFAST_AUTO_MIGRATE``: opening applies pending migrations."""
    allow_unsafe: bool = False
    """``HOLDFAST_ALLOW_UNSAFE``: accept a server that may lose an acknowledged write."""
    graph: str = "tables"
    """``HOLDFAST_GRAPH``: where the graph is kept: tables, or the name of an engine such as age."""
    history_ttl_seconds: float = 604_800
    """``HOLDFAST_HISTORY_TTL_SECONDS``: TTL of an unused transcript on Redis without Postgres."""
    state_ttl_seconds: float | None = None
    """``HOLDFAST_STATE_TTL_SECONDS``: TTL of an unused working state; none: it never expires."""
    state_versions: int = 0
    """``HOLDFAST_STATE_VERSIONS``: how many versions of a working state are kept, up to 1000."""
    hot_state_seconds: float = 3600
    """``HOLDFAST_HOT_STATE_SECONDS``: how long an unused state stays in Redis; 0: for ever."""
    redis_shards: int = 16
    """``HOLDFAST_REDIS_SHARDS``: number of shards of the keys in Redis; fixed at first use."""
    ack_level: str = ""
    """``HOLDFAST_ACK_LEVEL``: hot, fsync or committed; empty: fsync if proved, else committed."""
    redis_level: str = ""
    """``HOLDFAST_REDIS_LEVEL``: hot or fsync, if the server does not show its configuration."""
    background: bool = True
    """``HOLDFAST_BACKGROUND``: consolidate in this process; else run ``holdfast consolidate``."""
    soft_mark: int = 20_000
    """``HOLDFAST_SOFT_MARK``: backlog of a shard, in events, at which writers wait for a flush."""
    hard_mark: int = 200_000
    """``HOLDFAST_HARD_MARK``: backlog of a shard, in events, at which writes are refused."""
    embedder: str = ""
    """``HOLDFAST_EMBEDDER``: none, static, onnx:FOLDER, openai:URL?model=NAME&dimension=N, hash."""
    embedder_key: str = ""
    """``HOLDFAST_EMBEDDER_KEY``: the secret of an embedding service."""
    max_value_bytes: int = DEFAULT_LIMITS.value_bytes
    """``HOLDFAST_MAX_VALUE_BYTES``: of one message, event, state, document or fact; 0: no limit."""
    max_filter_terms: int = DEFAULT_LIMITS.filter_terms
    """``HOLDFAST_MAX_FILTER_TERMS``: maximum conditions in a filter; 0: no limit."""
    max_query_words: int = DEFAULT_LIMITS.query_words
    """``HOLDFAST_MAX_QUERY_WORDS``: maximum different words in a search query; 0: no limit."""
    max_walk_depth: int = DEFAULT_LIMITS.walk_depth
    """``HOLDFAST_MAX_WALK_DEPTH``: maximum depth of a graph traversal; 0: no limit."""
    max_walk_entities: int = DEFAULT_LIMITS.walk_entities
    """``HOLDFAST_MAX_WALK_ENTITIES``: maximum entities of a graph traversal; 0: no limit."""
    search_timeout_seconds: float = 5
    """``HOLDFAST_SEARCH_TIMEOUT_SECONDS``: timeout of a search on Postgres."""
    dedupe_message_ids: bool = False
    """``HOLDFAST_DEDUPE_MESSAGE_IDS``: the service treats a repeated messageId as a retry."""
    push_allow_private: bool = False
    """``HOLDFAST_PUSH_ALLOW_PRIVATE``: push also to private addresses, and without TLS."""
    studio_secret: str = ""
    """``HOLDFAST_STUDIO_SECRET``: signs Studio's sessions; all instances of a service share it."""
    receipt_key: str = ""
    """``HOLDFAST_RECEIPT_KEY``: signs receipts of erasures: ``openssl rand -hex 32``."""
    seal: str = ""
    """``HOLDFAST_SEAL``: encrypts content: env: (keys in HOLDFAST_KEYS) or file:/path/of/keys."""
    keys: str = ""
    """``HOLDFAST_KEYS``: keys for HOLDFAST_SEAL=env: as ID:KEY,ID:KEY; the first is current."""
    seal_vectors: str = ""
    """``HOLDFAST_SEAL_VECTORS``: plain stores vectors unencrypted; else sealed mode has none."""
    otel: bool = False
    """``HOLDFAST_OTEL``: traces and metrics of OpenTelemetry, to the global providers."""
    otel_tenant: bool = False
    """``HOLDFAST_OTEL_TENANT``: spans name the tenant, as ``db.namespace``."""

    def __post_init__(self) -> None:
        if self.storage_type and self.storage_type not in STORAGE_TYPES:
            raise UnknownSchemeError(self.storage_type, known=STORAGE_TYPES, setting="STORAGE_TYPE")
        if self.ack_level not in ACK_LEVELS:
            raise UnknownSchemeError(
                self.ack_level, known=ACK_LEVELS[1:], setting="HOLDFAST_ACK_LEVEL"
            )
        if self.redis_level not in REDIS_LEVELS:
            raise UnknownSchemeError(
                self.redis_level, known=REDIS_LEVELS[1:], setting="HOLDFAST_REDIS_LEVEL"
            )
        _seconds_or_off("HOLDFAST_HOT_STATE_SECONDS", str(self.hot_state_seconds))
        if self.storage_type == "postgres" and not self.database_url:
            raise ConfigError(
                "STORAGE_TYPE is postgres, but DATABASE_URL is not set: "
                "set it to postgresql://user:password@host/database"
            )
        if self.storage_type in {"memory", "embedded"} and self.database_url:
            raise ConfigError(
                f"STORAGE_TYPE is {self.storage_type}, but DATABASE_URL is set too: "
                "unset one of them"
            )

    def __repr__(self) -> str:
        shown = []
        for slot in dataclasses.fields(self):
            value = getattr(self, slot.name)
            if value != slot.default:
                text = _masked(slot.name, value)
                shown.append(f"{slot.name}={text!r}")
        return f"Settings({', '.join(shown)})"

    @property
    def limits(self) -> Limits:
        """The limits of values, filters, search queries and graph traversals.

        >>> Settings(max_walk_depth=3).limits.walk_depth
        3
        """
        return Limits(
            value_bytes=self.max_value_bytes,
            filter_terms=self.max_filter_terms,
            query_words=self.max_query_words,
            walk_depth=self.max_walk_depth,
            walk_entities=self.max_walk_entities,
        )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the environment, and a ``.env`` file in the current folder if there is one.

        The environment overrides the file. An unknown ``HOLDFAST_`` name is logged as a warning
        that names the nearest known one. A secret may be in a file: the variable with ``_FILE``
        after its name then has the path of the file. ``HOLDFAST_DIR`` alone implies embedded.

        >>> Settings.from_environment({"STORAGE_TYPE": "memory"}).storage_type
        'memory'
        """
        given = _environment() if environment is None else environment
        for problem in unknown_variables(given):
            notice(problem)
        given = with_secret_files(given)
        fields: dict[str, Any] = {}
        for field, name in _NAMES.items():
            text = given.get(name, "").strip()
            if text:
                fields[field] = _READ.get(field, _text)(name, text)
        if "directory" in fields and not {"storage_type", "database_url"} & fields.keys():
            fields["storage_type"] = "embedded"
        return cls(**fields)


def _masked(field: str, value: object) -> object:
    if field in {"embedder_key", "studio_secret", "receipt_key", "keys"}:
        return "***"
    if field == "embedder":
        kind, colon, rest = str(value).partition(":")
        return kind + colon + mask_url(rest)
    return mask_url(str(value)) if field.endswith("_url") else value


def _environment() -> dict[str, str]:
    """Return the environment merged over a ``.env`` file."""
    try:
        file = dotenv_values(".env")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the file .env cannot be read: {error}; fix or delete it") from None
    return {name: text for name, text in file.items() if text is not None} | dict(os.environ)


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return a warning for each unknown ``HOLDFAST_`` variable, with the nearest known name.

    >>> unknown_variables({"HOLDFAST_TENNANT": "acme"})
    ['the variable HOLDFAST_TENNANT is unknown and has no effect: did you mean HOLDFAST_TENANT?']
    """
    given = _environment() if environment is None else environment
    known = {*_NAMES.values(), *BY_FILE, *(f"{name}_FILE" for name in BY_FILE)}
    own = sorted(name for name in known if name.startswith("HOLDFAST_"))
    return [
        f"the variable {name} is unknown and has no effect: did you mean "
        f"{difflib.get_close_matches(name, own, n=1, cutoff=0.0)[0]}?"
        for name in sorted(given)
        if name.startswith("HOLDFAST_") and name not in own
    ]


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3_155_760_000:
        raise ConfigError(f"{name} must be a number of seconds above 0, not {text!r}")
    return seconds


def _seconds_or_off(name: str, text: str) -> float:
    try:
        if float(text) == 0:
            return 0.0
        return _seconds(name, text)
    except (ValueError, ConfigError):
        raise ConfigError(
            f"{name} must be a number of seconds above 0, or 0 to switch it off, not {text!r}"
        ) from None


def _statement_seconds(name: str, text: str) -> float:
    seconds = _seconds(name, text)
    if seconds > _LONGEST_STATEMENT:
        raise ConfigError(f"{name} must be at most {_LONGEST_STATEMENT} seconds, not {text!r}")
    return seconds


def _text(_name: str, text: str) -> str:
    return text


def _count(name: str, text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise ConfigError(f"{name} must be a whole number from 1 to 10000, not {text!r}")
    return int(text)


def _mark(name: str, text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000_000:
        raise ConfigError(f"{name} must be a whole number from 1 to 1000000000, not {text!r}")
    return int(text)


def _limit(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) > 1_000_000_000:
        raise ConfigError(
            f"{name} must be a whole number from 1 to 1000000000, "
            f"or 0 to switch it off, not {text!r}"
        )
    return int(text)


def _versions(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 4 or int(text) > MAX_VERSIONS:
        raise ConfigError(
            f"{name} must be a whole number from 1 to {MAX_VERSIONS}, "
            f"or 0 to keep no versions, not {text!r}"
        )
    return int(text)


def _switch(name: str, text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise UnknownSchemeError(text, known=list(_SWITCH), setting=name)
    return _SWITCH[text.lower()]


_READ: dict[str, Callable[[str, str], Any]] = {
    "blob_ttl_seconds": _seconds,
    "channel_retention_seconds": _seconds,
    "max_connections": _count,
    "command_timeout_seconds": _statement_seconds,
    "pooler": _switch,
    "auto_migrate": _switch,
    "allow_unsafe": _switch,
    "history_ttl_seconds": _seconds,
    "state_ttl_seconds": _seconds,
    "state_versions": _versions,
    "hot_state_seconds": _seconds_or_off,
    "redis_shards": _count,
    "background": _switch,
    "soft_mark": _mark,
    "hard_mark": _mark,
    "max_value_bytes": _limit,
    "max_filter_terms": _limit,
    "max_query_words": _limit,
    "max_walk_depth": _limit,
    "max_walk_entities": _limit,
    "search_timeout_seconds": _statement_seconds,
    "dedupe_message_ids": _switch,
    "push_allow_private": _switch,
    "otel": _switch,
    "otel_tenant": _switch,
}
