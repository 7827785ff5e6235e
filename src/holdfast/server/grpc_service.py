"""The A2A methods over gRPC; needs the extra ``grpc``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any, TypeAlias

import grpc
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.grpc_handler import (
    DefaultGrpcServerCallContextBuilder,
    GrpcHandler,
)
from a2a.types import a2a_pb2, a2a_pb2_grpc
from google.protobuf.message import DecodeError

from holdfast.server.caller import CALL, Caller, Doors
from holdfast.server.handler import LedgerRequestHandler
from holdfast.server.limits import KeyLimits, TooManyRequestsError
from holdfast.server.loop_shares import LoopShares
from holdfast.server.options import ServiceOptions, address_of
from holdfast.server.tls import tls_files
from holdfast.values.errors import ConfigError, HoldfastError
from holdfast.wiring.telemetry import Tracing

_Reader: TypeAlias = Callable[[bytes], Any]
_TOO_SLOW = "the request took too long to arrive"
_NOT_A_MESSAGE = "the request is not a message of this method in A2A's schema"
_SERVICE = a2a_pb2.DESCRIPTOR.services_by_name["A2AService"]
_METHODS = [f"/{_SERVICE.full_name}/{one.name}" for one in _SERVICE.methods]
_caller: ContextVar[Caller] = ContextVar("holdfast_grpc_caller")


class _Keys(grpc.aio.ServerInterceptor):
    """Accepts calls with a valid API key, within the limits of the key."""

    def __init__(
        self, doors: Doors, limits: KeyLimits, shares: LoopShares, *, body_seconds: float
    ) -> None:
        self._doors = doors
        self._limits = limits
        self._shares = shares
        self._body_seconds = body_seconds

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        """Authenticate the caller before a method is called."""
        given = dict(details.invocation_metadata or ())
        try:
            caller = await self._doors.caller(str(given.get("authorization", "")))
        except HoldfastError:
            return _refusing(grpc.StatusCode.UNAVAILABLE, "not available for now: try again")
        if caller is None:
            return _refusing(grpc.StatusCode.UNAUTHENTICATED, "send an API key as a bearer token")
        _caller.set(caller)
        found = await continuation(details)
        if found is None:
            return None
        # Handled as streams of bytes: for a unary call, gRPC waits for the message without a time
        # limit, and sends and logs what its deserializer raises.
        if found.unary_unary is not None:
            return grpc.stream_unary_rpc_method_handler(
                self._limited(found.unary_unary, found.request_deserializer, caller),
                response_serializer=found.response_serializer,
            )
        return grpc.stream_stream_rpc_method_handler(
            self._streaming(found.unary_stream, found.request_deserializer, caller),
            response_serializer=found.response_serializer,
        )

    def _limited(
        self,
        inner: Callable[[Any, Any], Coroutine[Any, Any, Any]],
        read: _Reader,
        caller: Caller,
    ) -> Any:
        async def serve(sent: AsyncIterator[bytes], context: Any) -> Any:
            try:
                with self._limits.request(caller.key_id):
                    message = await self._message(sent, read, context)
                    return await self._shares.run(caller.share, inner(message, context))
            except TooManyRequestsError as error:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))

        return serve

    def _streaming(
        self,
        inner: Callable[[Any, Any], AsyncGenerator[Any, None]],
        read: _Reader,
        caller: Caller,
    ) -> Any:
        async def serve(sent: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
            try:
                # It counts as a request until its message has arrived; then as a stream, which the
                # handler counts.
                with self._limits.request(caller.key_id):
                    message = await self._message(sent, read, context)
            except TooManyRequestsError as error:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
                return
            async with aclosing(inner(message, context)) as events:
                async for event in self._shares.iterate(caller.share, events):
                    yield event

        return serve

    async def _message(self, sent: AsyncIterator[bytes], read: _Reader, context: Any) -> Any:
        """Return the message of a call. Aborts the call if it is late or invalid."""
        try:
            async with asyncio.timeout(self._body_seconds):
                return read(await anext(sent))
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, _TOO_SLOW)
        except (DecodeError, StopAsyncIteration):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, _NOT_A_MESSAGE)


def _refusing(code: grpc.StatusCode, text: str) -> Any:
    """Return a handler that aborts a call at once.

    It is a stream handler: a unary one would first wait for a message, which may never arrive.
    """

    async def refuse(_requests: Any, context: Any) -> None:
        await context.abort(code, text)

    return grpc.stream_stream_rpc_method_handler(refuse)


class _Contexts(DefaultGrpcServerCallContextBuilder):
    """Passes the ``Call`` to the handler through the SDK's context."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    def build(self, context: Any) -> ServerCallContext:
        """Return the SDK's context with the ``Call`` in it."""
        built = super().build(context)
        headers = {
            key.lower(): value
            for key, value in context.invocation_metadata() or ()
            if isinstance(value, str)
        }
        built.state[CALL] = self._doors.call(_caller.get(), headers)
        return built


def grpc_server(
    handler: LedgerRequestHandler,
    doors: Doors,
    options: ServiceOptions,
    *,
    limits: KeyLimits,
    shares: LoopShares,
    tracing: Tracing | None,
) -> grpc.aio.Server:
    """Return a server on the options' port, not started yet."""
    keys = _Keys(doors, limits, shares, body_seconds=options.body_seconds)
    server = grpc.aio.server(
        interceptors=[keys] if tracing is None else [tracing.grpc(_METHODS), keys],
        maximum_concurrent_rpcs=options.max_connections,
        options=[
            ("grpc.max_receive_message_length", options.max_request_bytes),
            ("grpc.max_concurrent_streams", options.key_requests + options.key_streams),
            ("grpc.server_handshake_timeout_ms", round(options.head_seconds * 1000)),
        ],
    )
    servicer = GrpcHandler(handler, context_builder=_Contexts(doors))
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(servicer, server)
    address = address_of(options.host, options.grpc_port or 0)
    try:
        if options.tls_cert:
            server.add_secure_port(address, grpc.ssl_server_credentials([tls_files(options)]))
        else:
            server.add_insecure_port(address)
    except RuntimeError:
        raise ConfigError(f"cannot listen on {address}: is the port taken?") from None
    return server
