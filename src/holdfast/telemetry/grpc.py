"""One span for each gRPC call, in the trace of its ``traceparent`` metadata."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry import context, trace
from opentelemetry.trace import SpanKind

from holdfast.telemetry.instruments import Instruments, failed, remote


class TracedCalls(grpc.aio.ServerInterceptor):
    """Answers each call in a span of the trace in its metadata. It must be the first interceptor.

    The handlers of the next interceptor must take streams of requests. ``methods`` are the paths of
    the service's methods; other paths, which a client may send, are not used as names of spans. ::

        server = grpc.aio.server(interceptors=[TracedCalls(instruments, methods), keys])
    """

    def __init__(self, instruments: Instruments, methods: Collection[str]) -> None:
        self._tracer = instruments.tracer
        self._methods = frozenset(methods)

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        """Return the handler of a call, with a span around it."""
        found = await continuation(details)
        if found is None:
            return None
        codec = (found.request_deserializer, found.response_serializer)
        if found.stream_unary is not None:
            return grpc.stream_unary_rpc_method_handler(
                self._one(found.stream_unary, details), *codec
            )
        return grpc.stream_stream_rpc_method_handler(
            self._many(found.stream_stream, details), *codec
        )

    def _one(self, inner: Callable[[Any, Any], Awaitable[Any]], details: Any) -> Any:
        async def serve(sent: Any, call: Any) -> Any:
            with self._span(details):
                return await inner(sent, call)

        return serve

    def _many(self, inner: Callable[[Any, Any], Any], details: Any) -> Any:
        async def serve(sent: Any, call: Any) -> AsyncIterator[Any]:
            with self._span(details):
                answers = inner(sent, call)
                if not hasattr(answers, "__aiter__"):
                    await answers
                    return
                async for one in answers:
                    yield one

        return serve

    @contextmanager
    def _span(self, details: Any) -> Iterator[None]:
        known = details.method in self._methods
        name = details.method.lstrip("/") if known else "gRPC"
        parent = remote(_header(details.invocation_metadata or ()))
        about = {"rpc.system": "grpc", "rpc.method": name if known else "_OTHER"}
        span = self._tracer.start_span(name, parent, SpanKind.SERVER, about)
        token = context.attach(trace.set_span_in_context(span))
        try:
            yield
        except BaseException as error:
            failed(span, type(error).__name__)
            raise
        finally:
            context.detach(token)
            span.end()


def _header(metadata: Any) -> str:
    """Return ``traceparent`` in the metadata of a call; empty if there is not exactly one."""
    found = [value for name, value in metadata if name == "traceparent"]
    return found[0] if len(found) == 1 and isinstance(found[0], str) else ""
