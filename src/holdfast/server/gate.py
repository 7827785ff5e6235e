"""What a request passes before anything looks at it: its host, its key, its size."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.kernel.core.errors import HoldfastError
from holdfast.server.caller import CALLER, Caller, Doors
from holdfast.server.metrics import Metrics
from holdfast.server.options import LOOPBACK_NAMES, ServiceOptions, is_loopback

_log = logging.getLogger("holdfast.server")
OPEN = frozenset({"/health", "/.well-known/agent-card.json"})
"""What everybody may read."""

_BODILESS = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})
BODY_SECONDS = 30.0
"""How long a client may take to send its request."""

DISCARDED_BYTES, DISCARD_SECONDS = 16 * 1024 * 1024, 1.0
"""How much of a refused request is read, and for how long."""


class Refusal(Exception):  # noqa: N818 - it is an answer, and no fault of ours
    """A request ends here, with this answer."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers


class Gate:
    """The first layer of the service."""

    def __init__(
        self, inner: ASGIApp, doors: Doors, options: ServiceOptions, metrics: Metrics
    ) -> None:
        self._inner = inner
        self._doors = doors
        self._options = options
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        counting = self._counting(send)
        headers = Headers(scope=scope)
        try:
            self._check_host(headers)
            scope[CALLER] = await self._caller(scope["path"], headers)
            receive = await self._body(scope["method"], headers, receive)
        except Refusal as refusal:
            if scope["method"] not in _BODILESS:
                await _discard(receive)
            await _answer(refusal, counting)
            return
        await self._inner(scope, receive, counting)

    def _check_host(self, headers: Headers) -> None:
        """Without keys, answer only to this machine's own names.

        Any page that a browser shows could call by a name that it makes point here.
        """
        if self._options.auth or not is_loopback(self._options.host):
            return
        host = headers.get("host", "")
        name = host.partition("]")[0] + "]" if "]" in host else host.partition(":")[0]
        if name.lower() not in {*LOOPBACK_NAMES, self._options.host.lower()}:
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
            # The same for a key that is wrong and for one that was revoked.
            wrong = "this API key is unknown or revoked: make one with `holdfast keys create`"
            lacking = "send an API key: Authorization: Bearer …"
            text = wrong if given.lower().startswith("bearer ") else lacking
            raise Refusal(401, text, **{"WWW-Authenticate": "Bearer"})
        return caller

    async def _body(self, method: str, headers: Headers, receive: Receive) -> Receive:
        """The whole body, read here, so that its size is known before anybody looks inside."""
        if method in _BODILESS:
            return receive
        most = self._options.max_request_bytes
        length = headers.get("content-length", "0")
        too_large = Refusal(413, f"a request has at most {most} bytes")
        if not length.isdecimal() or int(length) > most:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "the request ended early")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > most:
                        raise too_large
        except TimeoutError:
            raise Refusal(408, "the request took too long to arrive") from None
        return _again(bytes(body), receive)

    def _counting(self, send: Send) -> Send:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.responses.labels(str(message["status"])).inc()
            await send(message)

        return counted


def _again(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay


async def _discard(receive: Receive) -> None:
    """Read on for a moment: a client that still sends when the connection closes sees no answer."""
    left = DISCARDED_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return


async def _answer(refusal: Refusal, send: Send) -> None:
    body = json.dumps({"error": {"code": refusal.status, "message": str(refusal)}}).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        **refusal.headers,
    }
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
