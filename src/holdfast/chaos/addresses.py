"""The addresses of the servers, and how to connect to them through a proxy."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit, urlunsplit

_PORTS = {"postgres": 5432, "postgresql": 5432, "redis": 6379}
_CHECKED = ("verify-ca", "verify-full")


@dataclass(frozen=True, slots=True)
class Given:
    """The user's own servers: the run uses a separate tenant there and never stops them.

    >>> Given("postgresql://db/main").redis
    ''
    """

    url: str
    redis: str = ""


def address_of(url: str) -> tuple[str, int] | str:
    """Return host and port of a server, or the reason why it cannot be used through a proxy.

    >>> address_of("redis://:secret@cache:7000/0")
    ('cache', 7000)
    >>> address_of("rediss://cache")
    'its certificate would not be that of the proxy'
    """
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    if parts.scheme == "rediss" or query.get("sslmode", [""])[0] in _CHECKED:
        return "its certificate would not be that of the proxy"
    if parts.scheme not in _PORTS or not parts.hostname or "host" in query:
        return "it is not reached by TCP"
    if "," in parts.netloc:
        return "it is several servers"
    return parts.hostname, parts.port or _PORTS[parts.scheme]


def by_way_of(url: str, port: int) -> str:
    """Return the URL with the server's address replaced by a port on loopback, that of a proxy.

    >>> by_way_of("redis://:secret@cache:7000/0", 9999)
    'redis://:secret@127.0.0.1:9999/0'
    """
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user}{at}127.0.0.1:{port}"))
