"""The same methods over gRPC; needs the extra ``grpc``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import grpc
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.grpc_handler import (
    DefaultGrpcServerCallContextBuilder,
    GrpcHandler,
)
from a2a.types import a2a_pb2_grpc

from holdfast.kernel.core.errors import ConfigError, HoldfastError
from holdfast.server.caller import CALL, Caller, Doors
from holdfast.server.handler import LedgerRequestHandler
from holdfast.server.options import ServiceOptions

_caller: ContextVar[Caller] = ContextVar("holdfast_grpc_caller")


class _Keys(grpc.aio.ServerInterceptor):
    """Lets in who has a key."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        """Find the caller before anything is called."""
        given = dict(details.invocation_metadata or ())
        try:
            caller = await self._doors.caller(str(given.get("authorization", "")))
        except HoldfastError:
            return _refusing(grpc.StatusCode.UNAVAILABLE, "not available for now: try again")
        if caller is None:
            return _refusing(grpc.StatusCode.UNAUTHENTICATED, "send an API key as a bearer")
        _caller.set(caller)
        return await continuation(details)


def _refusing(code: grpc.StatusCode, text: str) -> Any:
    async def refuse(_request: Any, context: Any) -> None:
        await context.abort(code, text)

    return grpc.unary_unary_rpc_method_handler(refuse)


class _Contexts(DefaultGrpcServerCallContextBuilder):
    """Lets a call reach the handler through the SDK's context."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    def build(self, context: Any) -> ServerCallContext:
        """The SDK's context, with our call in it."""
        built = super().build(context)
        headers = {
            key.lower(): value
            for key, value in context.invocation_metadata() or ()
            if isinstance(value, str)
        }
        built.state[CALL] = self._doors.call(_caller.get(), headers)
        return built


def grpc_server(
    handler: LedgerRequestHandler, doors: Doors, options: ServiceOptions
) -> grpc.aio.Server:
    """A server on the options' port, not started yet."""
    server = grpc.aio.server(
        interceptors=[_Keys(doors)],
        options=[("grpc.max_receive_message_length", options.max_request_bytes)],
    )
    servicer = GrpcHandler(handler, context_builder=_Contexts(doors))
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(servicer, server)
    address = f"{options.host}:{options.grpc_port}"
    try:
        server.add_insecure_port(address)
    except RuntimeError:
        raise ConfigError(f"cannot listen on {address}: is the port taken?") from None
    return server
