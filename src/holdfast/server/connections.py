"""Limits on HTTP connections: how many may be open, and how long one may be idle.

uvicorn waits for a request without a time limit. Here a connection has a deadline for its request
head, is aborted when its client stops reading, and is counted in total and per client network.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import resource
import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from holdfast.server.options import ServiceOptions
from holdfast.server.strict_http import StrictConnection

_log = logging.getLogger("holdfast.server")
RESERVED_FILES = 128
"""File descriptors reserved for databases, files and push notifications."""

_LINGER_SECONDS = 1.0
_HEAD_BYTES = 64 * 1024


def _plain(status: int, reason: str, message: str, *more: str) -> bytes:
    """Return a response for a connection that has no request yet."""
    body = json.dumps({"error": {"code": status, "message": message}})
    length = f"content-length: {len(body)}"
    lines = [f"HTTP/1.1 {status} {reason}", "content-type: application/json", *more, length]
    return "\r\n".join([*lines, "connection: close", "", body]).encode()


_BUSY = _plain(503, "Service Unavailable", "too many connections are open", "retry-after: 1")
_MALFORMED = _plain(400, "Bad Request", "this is not a well-formed request of HTTP/1.1")
_TOO_SLOW = _plain(408, "Request Timeout", "the request took too long to arrive")


def client_network(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the /64 network of an IPv6 address.

    >>> client_network("192.0.2.7"), client_network("2001:db8::1:2:3:4")
    ('192.0.2.7', '2001:db8::/64')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


class Connections:
    """The open connections of a service, in total and per client network.

    A connection waits until its request head is complete. When there is no room, the connection
    that has waited longest is aborted for a new one: clients that open connections and send
    nothing cannot block other clients.
    """

    def __init__(self, options: ServiceOptions) -> None:
        self.options = options
        self.most = _affordable(options.max_connections)
        self._open: set[LimitedProtocol] = set()
        self._by_network: Counter[str] = Counter()
        self._waiting: dict[LimitedProtocol, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, one: LimitedProtocol) -> bool:
        """Count a new connection. Returns false if there is no room for it."""
        if self._by_network[one.network] >= self.options.max_connections_per_address:
            return False
        if len(self._open) >= self.most:
            longest = next(iter(self._waiting), None)
            if longest is None:
                return False
            self.leave(longest)
            longest.abort()
        self._open.add(one)
        self._by_network[one.network] += 1
        self._waiting[one] = None
        return True

    def leave(self, one: LimitedProtocol) -> None:
        """Stop counting a connection; a second call has no effect."""
        self._waiting.pop(one, None)
        if one in self._open:
            self._open.remove(one)
            self._by_network[one.network] -= 1
        if not self._by_network[one.network]:
            del self._by_network[one.network]

    def waits(self, one: LimitedProtocol) -> None:
        """Record that the connection waits for a request; if it did already, nothing changes."""
        if one in self._open:
            self._waiting.setdefault(one)

    def works(self, one: LimitedProtocol) -> None:
        """Record that the connection has a request in progress."""
        self._waiting.pop(one, None)


def _affordable(wanted: int) -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft - RESERVED_FILES >= wanted:
        return wanted
    most = max(soft - RESERVED_FILES, 1)
    _log.warning(
        "at most %d connections instead of %d: the limit of open files is %d (ulimit -n)",
        *(most, wanted, soft),
    )
    return most


class LimitedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol with deadlines; it refuses requests with an ambiguous end."""

    def __init__(self, connections: Connections, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.conn = StrictConnection(h11.SERVER, _HEAD_BYTES)
        self.network = ""
        self._counted = connections
        self._admitted = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Count the connection, or refuse it."""
        super().connection_made(transport)
        # pause_writing() is to be called for any unread byte, not only above a high-water mark.
        transport.set_write_buffer_limits(high=1)
        self.network = client_network(self.client[0]) if self.client else ""
        self._admitted = self._counted.admit(self)
        if self._admitted:
            self._expect_head()
        else:
            self._refuse(_BUSY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        self._counted.leave(self)
        for timer in (self._head_timer, self._stall_timer, self._close_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read bytes; close the connection if a request's headers take too long."""
        if not self._admitted or self.transport.is_closing():
            return
        super().data_received(data)
        if self._answering():
            self._head_complete()
        elif self._head_timer is None:
            self._expect_head()

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request with 400 and close; if a response has begun, only close."""
        del msg
        if self._answering() and self.cycle.response_started:
            self.abort()
        else:
            self._refuse(_MALFORMED)

    def on_response_complete(self) -> None:
        """Wait for the next request; uvicorn closes the connection if none begins soon."""
        super().on_response_complete()
        if not self._answering():
            self._counted.waits(self)

    def pause_writing(self) -> None:
        """Start a timer: abort if the client does not read its response for ``stall_seconds``."""
        super().pause_writing()
        self._watch_stall(self.transport.get_write_buffer_size() + 1)

    def resume_writing(self) -> None:
        """Cancel the timer: the client has read everything."""
        super().resume_writing()
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def abort(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def _answering(self) -> bool:
        # uvicorn sets it with the first request.
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _expect_head(self) -> None:
        seconds = self._counted.options.head_seconds
        self._head_timer = self.loop.call_later(seconds, self._head_is_late)
        self._counted.waits(self)

    def _head_complete(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        self._counted.works(self)

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self._refuse(_TOO_SLOW)

    def _refuse(self, answer: bytes) -> None:
        self.transport.write(answer)
        self.transport.close()
        # close() waits until the client has read the response.
        self._close_timer = self.loop.call_later(_LINGER_SECONDS, self.abort)

    def _watch_stall(self, before: int) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread >= before:
            self.abort()
            return
        seconds = self._counted.options.stall_seconds
        self._stall_timer = self.loop.call_later(seconds, self._watch_stall, unread)


class HttpServer(uvicorn.Server):
    """uvicorn with limited connections; it installs no signal handlers, its caller does.

    ::

        server = HttpServer(asgi, options, tls=None)
        await server.serve(sockets=[listener])
    """

    def __init__(
        self, asgi: Any, options: ServiceOptions, *, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(
            uvicorn.Config(
                asgi,
                http=LimitedProtocol,
                ws="none",
                log_config=None,
                lifespan="off",
                server_header=False,
                timeout_keep_alive=max(1, round(options.idle_seconds)),
                timeout_graceful_shutdown=max(1, round(options.drain_seconds)),
            )
        )
        self.connections = Connections(options)
        self._tls = tls

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals, unlike uvicorn, so that an orderly shutdown has exit code 0."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen; a TLS handshake has the same deadline as a request head."""
        loop = asyncio.get_running_loop()

        def protocol() -> LimitedProtocol:
            return LimitedProtocol(
                self.connections,
                config=self.config,
                server_state=self.server_state,
                app_state={},
            )

        seconds = self.connections.options.head_seconds if self._tls else None
        self.servers = [
            await loop.create_server(
                protocol,
                sock=one,
                ssl=self._tls,
                backlog=self.config.backlog,
                ssl_handshake_timeout=seconds,
            )
            for one in sockets or ()
        ]
        self.started = True
