"""A server's version and mode, and how durable its acknowledged writes are. Read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from redis.exceptions import ResponseError

from holdfast.engines.redis.connections import Server, pairs_of

Level: TypeAlias = Literal["none", "unproved", "hot", "fsync"]

SETTINGS = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite", "save")
_LEVELS: tuple[Level, ...] = ("none", "unproved", "hot", "fsync")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The server's version and mode, and what its settings mean for an acknowledged write.

    >>> about = Capabilities("Valkey", "9.1.0", appendonly="yes", appendfsync="always")
    >>> about.durability
    'fsync: every write is on disk before it is acknowledged'
    """

    product: str
    version: str
    mode: str = "standalone"
    appendonly: str | None = None
    appendfsync: str | None = None
    no_appendfsync_on_rewrite: str | None = "no"
    save: str | None = ""
    maxmemory: int = 0
    maxmemory_policy: str = "noeviction"
    replicas: int = 0
    promoted: bool = False
    """Whether the server was a replica before it was promoted."""

    @property
    def may_fail_over(self) -> bool:
        """Whether a replica may be promoted, or was. Such a replica may lack acknowledged writes.

        >>> Capabilities("Valkey", "9.1.0", mode="sentinel").may_fail_over
        True
        """
        return self.mode != "standalone" or self.replicas > 0 or self.promoted

    @property
    def level(self) -> Level:
        """How safe an acknowledged write is; ``unproved`` if the server does not show its settings.

        Behind Sentinel and in a cluster it is ``unproved``: a replica that is promoted may lack
        writes that the old primary has on disk.
        """
        if self.appendonly == "no":
            return "none"
        if self.mode != "standalone":
            return "unproved"
        if None in {self.appendonly, self.appendfsync, self.no_appendfsync_on_rewrite}:
            return "unproved"
        always = self.appendfsync == "always" and self.no_appendfsync_on_rewrite == "no"
        return "fsync" if always else "hot"

    @property
    def durability(self) -> str:
        """One sentence on what an acknowledged write survives."""
        match self.level:
            case "fsync":
                return "fsync: every write is on disk before it is acknowledged"
            case "hot" if self.appendfsync == "no":
                return "hot: what the system has not written yet is lost on power loss"
            case "hot" if self.appendfsync == "always":
                return "hot: writes may be lost on power loss while the log is rewritten"
            case "hot":
                return "hot: up to a second may be lost on power loss"
            case "none" if self.save:
                return "none: what came after the last snapshot is lost when the server stops"
            case "none":
                return "none: lost when the server stops"
        if self.mode != "standalone":
            return "unproved: a replica that is behind may be promoted"
        return "unproved: the server does not show its settings (CONFIG is refused)"

    @property
    def unsafe(self) -> str:
        """Why the server could evict acknowledged data, or ``""``."""
        if self.maxmemory and self.maxmemory_policy.startswith("allkeys-"):
            return f"maxmemory-policy is {self.maxmemory_policy}"
        return ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to change, each with the setting to use.

        >>> Capabilities("Redis", "7.2.4", appendonly="no", maxmemory=1 << 30).warnings
        ('appendonly is no: set `appendonly yes` and `appendfsync always`',)
        """
        found = []
        if self.appendonly == "no":
            found.append("appendonly is no: set `appendonly yes` and `appendfsync always`")
        elif self.mode != "standalone":
            pass
        elif self.level == "unproved":
            found.append(
                "CONFIG is refused: allow `CONFIG GET` to this user, or state the level in the "
                "settings"
            )
        elif self.appendfsync != "always":
            found.append(f"appendfsync is {self.appendfsync}: set `appendfsync always`")
        elif self.no_appendfsync_on_rewrite != "no":
            found.append("no-appendfsync-on-rewrite is yes: set `no-appendfsync-on-rewrite no`")
        if self.maxmemory_policy.startswith("allkeys-"):
            found.append(
                f"maxmemory-policy is {self.maxmemory_policy}, which evicts what is not stored "
                "elsewhere: set `maxmemory-policy noeviction`"
            )
        elif self.maxmemory_policy.startswith("volatile-"):
            found.append(
                f"maxmemory-policy is {self.maxmemory_policy}, which evicts what would expire "
                "later: set `maxmemory-policy noeviction`"
            )
        if self.maxmemory == 0:
            found.append("maxmemory is not set: set `maxmemory` below what the machine has")
        return tuple(found)

    def describe(self) -> str:
        """Return one line for people to read.

        >>> Capabilities("Valkey", "9.1.0", mode="cluster").describe()
        'Valkey 9.1.0, cluster'
        """
        return f"{self.product} {self.version}, {self.mode}"


async def read_capabilities(server: Server) -> Capabilities:
    """Read the capabilities of every server that holds data. Returns those of the weakest."""
    info = [_info(text) for text in await server.call_each(("info",))]
    settings: list[dict[str, str]] = [{} for _ in info]
    for name in SETTINGS:
        try:
            answers = await server.call_each(("config", "get", name))
        except ResponseError:
            # Managed servers refuse it, each with a different error.
            continue
        for found, answer in zip(settings, answers, strict=True):
            found.update(_texts(pairs_of(answer)))
    return weakest(
        [_of(one, found, server.mode) for one, found in zip(info, settings, strict=True)]
    )


def weakest(servers: Sequence[Capabilities]) -> Capabilities:
    """Return the least durable of the servers.

    >>> one, other = (Capabilities("Valkey", "9.1.0", appendonly=on) for on in ("no", "yes"))
    >>> weakest([other, one]).level
    'none'
    """
    return min(servers, key=lambda one: (not one.unsafe, _LEVELS.index(one.level)))


def _of(info: Mapping[str, str], settings: Mapping[str, str], mode: str) -> Capabilities:
    is_valkey = "valkey_version" in info
    on = {"0": "no", "1": "yes"}.get(info.get("aof_enabled", ""))
    return Capabilities(
        product="Valkey" if is_valkey else "Redis",
        version=info["valkey_version" if is_valkey else "redis_version"],
        mode=mode,
        appendonly=settings.get("appendonly", on),
        appendfsync=settings.get("appendfsync"),
        no_appendfsync_on_rewrite=settings.get("no-appendfsync-on-rewrite"),
        save=settings.get("save"),
        maxmemory=int(info.get("maxmemory", 0)),
        maxmemory_policy=info.get("maxmemory_policy", "noeviction"),
        replicas=int(info.get("connected_slaves", 0)),
        # The id of the primary that it followed; zeros if it followed none.
        promoted=bool(info.get("master_replid2", "").strip("0")),
    )


def _info(answer: bytes) -> dict[str, str]:
    lines = answer.decode("utf-8", "replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))


def _texts(answer: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode("utf-8", "replace") for name, value in answer.items()}
