"""The checks that a request passes before it is parsed: host, API key, size of its body."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from a2a.server.request_handlers import build_error_response
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.server.caller import CALLER, Caller, Doors
from holdfast.server.errors import WORDS, log_incident, to_a2a
from holdfast.server.health import HEALTH_PATHS
from holdfast.server.limits import KeyLimits, RequestSlot, TooManyRequestsError
from holdfast.server.loop_shares import NOBODY, LoopShares
from holdfast.server.metrics import Metrics
from holdfast.server.options import LOOPBACK_NAMES, ServiceOptions, host_name, is_loopback
from holdfast.values.errors import HoldfastError

_log = logging.getLogger("holdfast.server")
OPEN = frozenset({*HEALTH_PATHS, "/.well-known/agent-card.json", "/.well-known/agent.json"})
"""Paths that need no API key."""

BODIES_AT_ONCE = 64
"""The memory for all request bodies, as a multiple of the maximum size of one body."""

SHARES = 8
"""One caller may use at most 1/SHARES of that memory. A caller is an API key, or an address."""

NAMELESS_BYTES = 1024
"""Maximum body size of a request without a key, to a path that needs none."""

DISCARDED_BYTES, DISCARD_SECONDS = 16 * 1024 * 1024, 1.0
"""How many bytes of a refused request are read and discarded, and for how long."""


class Refusal(Exception):  # noqa: N818 - it is an answer, and no fault of ours
    """Raised to refuse a request with this response."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers
        error = {"code": status, "message": text}
        if status in WORDS:
            error["status"] = WORDS[status]
        self.body: dict[str, Any] = {"error": error}


class Gate:
    """The outermost ASGI layer of the service."""

    def __init__(
        self,
        inner: ASGIApp,
        doors: Doors,
        options: ServiceOptions,
        *,
        metrics: Metrics,
        limits: KeyLimits,
        shares: LoopShares,
    ) -> None:
        self._inner = inner
        self._doors = doors
        self._options = options
        self._metrics = metrics
        self._limits = limits
        self._shares = shares
        self._bodies = Bodies(options.max_request_bytes * BODIES_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        answer = _Answer(send, self._metrics)
        headers = Headers(scope=scope)
        try:
            self._check_host(headers)
            caller = scope[CALLER] = await self._caller(scope["path"], headers)
            with (
                self._limits.request(caller.key_id if caller else "") as answer.slot,
                self._bodies.held(_who(scope, caller)) as body,
            ):
                answer.body = body
                await self._read(headers, receive, body, known=caller is not None)
                answering = self._answering(scope, _again(body, receive), answer.send)
                await self._shares.run(caller.share if caller else NOBODY, answering)
        except Refusal as refusal:
            await _discard(receive)
            await answer.refuse(refusal)
        except TooManyRequestsError as error:
            await _discard(receive)
            await answer.refuse(_slower(scope, error))
        except Exception as error:  # noqa: BLE001 - nothing of it may reach a client
            incident = log_incident(error)
            await answer.refuse(Refusal(500, f"internal error, incident {incident}"))

    async def _answering(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._inner(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        """Without auth on a loopback address, refuse a ``Host`` that is no name of this machine.

        Otherwise any web page in a local browser could call the service, by a host name that it
        makes resolve to this address (DNS rebinding).
        """
        if self._options.auth or not is_loopback(self._options.host):
            return
        name = host_name(headers.get("host", ""))
        if name not in {*LOOPBACK_NAMES, self._options.host.lower()}:
            raise Refusal(421, "without API keys the service answers to this machine only")

    async def _caller(self, path: str, headers: Headers) -> Caller | None:
        given = headers.get("authorization", "")
        if path in OPEN and not given:
            return None
        try:
            caller = await self._doors.caller(given)
        except HoldfastError as error:
            if path in OPEN:
                return None
            _log.warning("a key could not be checked: %s", error)
            raise Refusal(503, "not available for now: try again", **{"Retry-After": "1"}) from None
        if caller is None and path not in OPEN:
            # The same text for a wrong key, a revoked one and an expired one.
            wrong = "this API key is unknown, revoked or expired: `holdfast keys create` makes one"
            lacking = "send an API key: Authorization: Bearer …"
            text = wrong if given.lower().startswith("bearer ") else lacking
            raise Refusal(401, text, **{"WWW-Authenticate": "Bearer"})
        return caller

    async def _read(self, headers: Headers, receive: Receive, body: Body, *, known: bool) -> None:
        """Read the whole body, for any method: no later layer gets one above the limit."""
        # The paths that need no key need no body either.
        most = self._options.max_request_bytes if known else NAMELESS_BYTES
        too_large = Refusal(413, f"a request has at most {most} bytes")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise too_large
        try:
            async with asyncio.timeout(self._options.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "the request ended early")
                    body.add(message.get("body", b""))
                    more = message.get("more_body", False)
                    if len(body.data) > most:
                        raise too_large
        except TimeoutError:
            raise Refusal(408, "the request took too long to arrive") from None


class Body:
    """The body of a request in progress."""

    def __init__(self, bodies: Bodies, who: str) -> None:
        self._bodies = bodies
        self._who = who
        self.data = bytearray()

    def add(self, more: bytes) -> None:
        """Add bytes, if there is memory for them."""
        self._bodies.take(self._who, len(more))
        self.data += more

    def release(self) -> None:
        """Free the body's memory: the response has begun, and the body is not read again."""
        self._bodies.give_back(self._who, len(self.data))
        self.data.clear()


class Bodies:
    """The memory limit for the bodies of all requests in progress."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._share = most // SHARES
        self._taken: Counter[str] = Counter()

    def take(self, who: str, size: int) -> None:
        """Reserve memory. Refuses the request if all of it, or the caller's share, is in use."""
        if size > self._left or self._taken[who] + size > self._share:
            text = "too many large requests at a time: try again"
            raise Refusal(503, text, **{"Retry-After": "1"})
        self._left -= size
        self._taken[who] += size

    def give_back(self, who: str, size: int) -> None:
        """Free reserved memory."""
        self._left += size
        self._taken[who] -= size
        if not self._taken[who]:
            del self._taken[who]

    @contextmanager
    def held(self, who: str) -> Iterator[Body]:
        """Yield a body that ``who`` sent, and free its memory at the end."""
        body = Body(self, who)
        try:
            yield body
        finally:
            body.release()


class _Answer:
    """Sends the response to a request, and counts it."""

    def __init__(self, send: Send, metrics: Metrics) -> None:
        self._send = send
        self._metrics = metrics
        self._started = False
        self.slot: RequestSlot | None = None
        self.body: Body | None = None

    async def send(self, message: Message) -> None:
        """Send a message of the response."""
        if message["type"] == "http.response.start":
            self._started = True
            if self.body is not None:
                self.body.release()
            self._metrics.responses.labels(str(message["status"])).inc()
            kind = Headers(raw=message.get("headers", [])).get("content-type", "")
            if self.slot is not None and kind.startswith("text/event-stream"):
                # From here on the request counts as a stream.
                self.slot.release()
        await self._send(message)

    async def refuse(self, refusal: Refusal) -> None:
        """Send a refusal; if a response has begun, the server closes the connection instead."""
        if self._started:
            return
        body = json.dumps(refusal.body).encode()
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
            **refusal.headers,
        }
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": refusal.status, "headers": raw})
        await self._send({"type": "http.response.body", "body": body})


def _who(scope: Scope, caller: Caller | None) -> str:
    """Return the caller whose memory share a body uses: the API key, or else the address."""
    if caller is not None and caller.key_id:
        return caller.key_id
    client = scope.get("client")
    return str(client[0]) if client else ""


def _slower(scope: Scope, error: TooManyRequestsError) -> Refusal:
    """Return the response for a key at its limit, in the format of the request's A2A binding."""
    answered, hint = to_a2a(error)
    headers = {} if hint is None else hint.headers
    refusal = Refusal(429, str(error), **headers)
    if (scope["method"], scope["path"]) == ("POST", "/"):
        refusal.body = build_error_response(None, answered)
    return refusal


def _again(body: Body, receive: Receive) -> Receive:
    """Return an ASGI ``receive`` with the whole body first, then what the connection sends."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": bytes(body.data), "more_body": False}
        return await receive()

    return replay


async def _discard(receive: Receive) -> None:
    """Read and discard for a moment: a client that still sends at the close sees no response."""
    left = DISCARDED_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
