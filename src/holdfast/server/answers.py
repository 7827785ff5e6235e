"""Decorators of all A2A methods: checks, metrics, and errors without internal details."""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any, Protocol, TypeVar

from a2a.server.context import ServerCallContext
from a2a.utils.errors import (
    A2AError,
    InvalidParamsError,
    InvalidRequestError,
    VersionNotSupportedError,
)
from google.protobuf.message import Message as ProtoMessage

from holdfast.server.caller import Call, call_of
from holdfast.server.errors import NotAllowedError, to_a2a
from holdfast.server.key_watch import KeyWatch
from holdfast.server.limits import KeyLimits
from holdfast.server.metrics import Metrics
from holdfast.server.options import ServiceOptions
from holdfast.server.schema import check_required, wire_name
from holdfast.values.errors import BackPressureError, InvalidInputError

KEY_ENDED = "the API key was revoked or has expired: the stream ends"
READ_ONLY = "this API key has the scope reader: it may only get, list and watch tasks"
_VERSION = re.compile(r"1(\.\d{1,3}){0,2}", re.ASCII)
P = TypeVar("P")
R = TypeVar("R")


class Counted(Protocol):
    """The attributes of a handler that these decorators use."""

    metrics: Metrics
    options: ServiceOptions
    streams: int
    limits: KeyLimits
    watch: KeyWatch


S = TypeVar("S", bound=Counted)


def answers(
    name: str,
    *,
    writes: bool = False,
) -> Callable[
    [Callable[[S, P, Call], Coroutine[Any, Any, R]]],
    Callable[[S, P, ServerCallContext], Coroutine[Any, Any, R]],
]:
    """Wrap a coroutine method that takes a ``Call`` as one that takes the SDK's context.

    ``writes=True`` means that it changes data or returns a secret: keys with read scope get an
    error.
    """

    def wrap(
        method: Callable[[S, P, Call], Coroutine[Any, Any, R]],
    ) -> Callable[[S, P, ServerCallContext], Coroutine[Any, Any, R]]:
        @functools.wraps(method)
        async def wrapped(self: S, params: P, context: ServerCallContext) -> R:
            call = call_of(context)
            with self.metrics.call(name):
                try:
                    _check(params, context, call, writes=writes)
                    return await method(self, params, call)
                except Exception as error:
                    raise _a2a_error(call, error, params) from error

        return wrapped

    return wrap


def streams(
    name: str,
    *,
    writes: bool = False,
) -> Callable[
    [Callable[[S, P, Call], AsyncGenerator[R, None]]],
    Callable[[S, P, ServerCallContext], AsyncGenerator[R, None]],
]:
    """Wrap a method that yields events, as ``answers`` does; limits the number of open streams."""

    def wrap(
        method: Callable[[S, P, Call], AsyncGenerator[R, None]],
    ) -> Callable[[S, P, ServerCallContext], AsyncGenerator[R, None]]:
        @functools.wraps(method)
        async def wrapped(
            self: S, params: P, context: ServerCallContext
        ) -> AsyncGenerator[R, None]:
            call, begun = call_of(context), False
            try:
                async with _room(self, call):
                    with self.metrics.call(name):
                        _check(params, context, call, writes=writes)
                        events = method(self, params, call)
                        first = await anext(events, None)
                    begun = True
                    async with aclosing(events):
                        if first is not None:
                            yield first
                        async for event in events:
                            yield event
                    _check_key(call)
            except Exception as error:
                answered = _a2a_error(call, error, params)
                if not (begun and call.over_http):
                    raise answered from error
                call.failed = answered

        return wrapped

    return wrap


def _check_key(call: Call) -> None:
    if call.ended.is_set():
        raise InvalidRequestError(message=KEY_ENDED)


def _check(params: Any, context: ServerCallContext, call: Call, *, writes: bool) -> None:
    if writes and not call.caller.writes:
        raise NotAllowedError(READ_ONLY)
    if not call.over_http:
        # Over HTTP the SDK has checked the version.
        _check_version(call.header("a2a-version"))
    if context.tenant and context.tenant != call.caller.tenant:
        raise InvalidParamsError(message="tenant: is not that of the API key: leave it out")
    if isinstance(params, ProtoMessage):
        check_required(params, json_names=call.over_http)


def _check_version(version: str) -> None:
    """Raise for a version over gRPC that is not 1.x.

    gRPC serves the schema of 1.0 only, so the version may be left out.
    """
    if version and not _VERSION.fullmatch(version):
        raise VersionNotSupportedError(message="gRPC serves A2A 1.0: send `a2a-version: 1.0`")


@asynccontextmanager
async def _room(handler: Counted, call: Call) -> AsyncIterator[None]:
    """Count a stream while it is open, and watch whether its API key is revoked or expires."""
    if handler.streams >= handler.options.max_streams:
        raise BackPressureError(retry_after_seconds=5, message="too many streams are open")
    with handler.limits.stream(call.caller.key_id):
        handler.streams += 1
        handler.metrics.streams.set(handler.streams)
        try:
            async with handler.watch.watching(call.caller) as call.ended:
                yield
        finally:
            handler.streams -= 1
            handler.metrics.streams.set(handler.streams)


def _a2a_error(call: Call, error: Exception, params: object) -> A2AError:
    if isinstance(error, InvalidInputError):
        name = wire_name(error.field, params, json_names=call.over_http)
        error = InvalidInputError(name, str(error).removeprefix(f"{error.field}: "))
    answered, call.hint = to_a2a(error)
    return answered
