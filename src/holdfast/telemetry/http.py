"""One span for each HTTP request, in the trace of its ``traceparent`` header."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from opentelemetry import context, trace
from opentelemetry.trace import SpanKind

from holdfast.telemetry.instruments import Instruments, failed, remote

_Message: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[_Message]]
_Send: TypeAlias = Callable[[_Message], Awaitable[None]]
Asgi: TypeAlias = Callable[[_Message, _Receive, _Send], Awaitable[None]]

METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


def traced_http(inner: Asgi, instruments: Instruments) -> Asgi:
    """Return an ASGI app that answers each request in a span of the trace in ``traceparent``."""

    async def app(scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        # A client chooses the method: others than these would be names without end.
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        span = instruments.tracer.start_span(
            "HTTP" if method == "_OTHER" else method,
            remote(_header(scope)),
            SpanKind.SERVER,
            {"http.request.method": method},
        )

        async def sent(message: _Message) -> None:
            if message["type"] == "http.response.start":
                status = int(message["status"])
                span.set_attribute("http.response.status_code", status)
                if status >= 500:
                    span.set_status(trace.StatusCode.ERROR)
            await send(message)

        token = context.attach(trace.set_span_in_context(span))
        try:
            await inner(scope, receive, sent)
        except BaseException as error:
            failed(span, type(error).__name__)
            raise
        finally:
            context.detach(token)
            span.end()

    return app


def _header(scope: _Message) -> str:
    """Return the header ``traceparent`` of a request; empty if there is not exactly one."""
    found = [value for name, value in scope["headers"] if name == b"traceparent"]
    return found[0].decode("latin-1") if len(found) == 1 else ""
