"""Connects to the host that accepts writes, if a URL names several hosts.

The driver knows such URLs, but has one timeout for all hosts: a host that does not answer, as after
a power cut, would use it up before the next one is tried.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

Connect: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]

READ_WRITE = "read-write"
DEFAULT_PORT = 5432
LAST_PORT = 65_535
_TARGET = "target_session_attrs"
_NEXT_HOST = ("57P01", "57P02", "57P03")
"""SQLSTATEs of a server that is starting or shutting down: the next host is tried."""


def hosts_of(url: str) -> list[tuple[str, int]]:
    """Return the hosts and ports of a URL, in its order; a missing host name is ``""``.

    >>> hosts_of("postgresql://ana@db1,db2:5433/main")
    [('db1', 5432), ('db2', 5433)]
    >>> hosts_of("postgresql://ana@/main?host=db1,db2&port=5433")
    [('db1', 5433), ('db2', 5433)]
    """
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    spec = parts.netloc.rpartition("@")[2] or query.get("host", "")
    ports = query.get("port", "").split(",")
    found = []
    for at, one in enumerate(spec.split(",")):
        # The part after the last colon is a port, unless that colon is inside of an IPv6 address.
        host, colon, port = one.rpartition(":")
        if not colon or "]" in port or one.startswith("/"):
            host, port = one, ports[at] if at < len(ports) else ports[-1]
        number = int(port or DEFAULT_PORT)
        if number > LAST_PORT:
            raise ValueError("a port must be from 0 to 65535")
        found.append((unquote(host).strip("[]"), number))
    return found


def connector(url: str) -> Connect:
    """Return the function by which a pool connects. It tries the host that worked last first.

    With several hosts, it connects only to one that accepts writes, unless the URL sets
    ``target_session_attrs``. Each host has an equal share of the timeout. ::

        pool = await asyncpg.create_pool(url, connect=connector(url))
    """
    hosts = hosts_of(url)
    if len(hosts) == 1:
        return _connect_to(hosts[0][0])
    given = parse_qs(urlsplit(url).query).get(_TARGET)
    target = {} if given else {_TARGET: READ_WRITE}
    last = 0

    async def connect(dsn: str, *, timeout: float = 10, **how: Any) -> Any:  # noqa: ASYNC109 - the driver's name
        nonlocal last
        problems = []
        for at in (last, *(other for other in range(len(hosts)) if other != last)):
            host, port = hosts[at]
            share = timeout / len(hosts)
            try:
                found = await _connect(dsn, host=host, port=port, timeout=share, **target, **how)
            except (OSError, asyncpg.PostgresError, asyncpg.InternalClientError) as error:
                if not _may_be_another(error):
                    raise
                problems.append(f"{host}:{port}: {_why(error)}")
            else:
                last = at
                return found
        raise ConnectionRefusedError(f"no host takes writes ({'; '.join(problems)})")

    return connect


def _connect_to(host: str) -> Connect:
    async def connect(dsn: str, **how: Any) -> Any:
        try:
            return await _connect(dsn, **how)
        except socket.gaierror as error:
            why = error.strerror or "no address"
            raise ConnectionRefusedError(f"the host {host!r} was not found ({why})") from error

    return connect


async def _connect(dsn: str, **how: Any) -> Any:
    return await asyncpg.connect(dsn, **how)


def _may_be_another(error: BaseException) -> bool:
    """Return whether the next host should be tried: this one is down or accepts no writes."""
    if isinstance(error, asyncpg.PostgresError):
        state = str(getattr(error, "sqlstate", None) or "")
        return state.startswith("08") or state in _NEXT_HOST
    return isinstance(error, (OSError, asyncpg.TargetServerAttributeNotMatched))


def _why(error: BaseException) -> str:
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return "is read-only"
    return str(error) or "no answer"
