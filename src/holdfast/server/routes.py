"""The routes of the service, wrapped around the SDK's routes."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, cast

from a2a.server.context import ServerCallContext
from a2a.server.jsonrpc_models import JSONParseError as RpcParseError
from a2a.server.jsonrpc_models import JSONRPCError
from a2a.server.request_handlers import build_error_response
from a2a.server.routes import create_jsonrpc_routes, create_rest_routes, jsonrpc_dispatcher
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidRequestError,
    JSONParseError,
    VersionNotSupportedError,
)
from sse_starlette.event import ServerSentEvent
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router

from holdfast.server.caller import CALL, CALLER, Call, Doors
from holdfast.server.errors import WORDS, Hint, to_a2a
from holdfast.server.extensions import Extensions
from holdfast.server.handler import LedgerRequestHandler
from holdfast.server.loop_shares import LoopShares
from holdfast.server.reading import check_call, check_rest, read_call, read_json, request_id

Endpoint = Callable[[Request], Awaitable[Response]]
Shape = Callable[[A2AError], dict[str, Any]]
"""Converts an error to the JSON of a binding."""

_JSON = {"application/json", "application/a2a+json"}
_NOT_JSON = "Content-Type: must be application/json or application/a2a+json"
_OLD_PATHS = "/v1/"
_INTERNAL = -32603
_VERSION = re.compile(r"\d{1,3}(\.\d{1,3}){0,2}", re.ASCII)
_NO_VERSION = (
    "without A2A-Version a request is of 0.3, and this is 1.0: send `A2A-Version: 1.0`, or "
)


class _Contexts(DefaultServerCallContextBuilder):
    """Passes the ``Call`` to the handler through the SDK's context."""

    def build(self, request: Request) -> ServerCallContext:
        """Return the SDK's context with the ``Call`` in it."""
        context = super().build(request)
        context.state[CALL] = request.scope[CALL]
        return context


def _hides_bodies(record: logging.LogRecord) -> bool:
    """Log filter for the SDK: at DEBUG it logs whole requests, with the secrets in them."""
    return not str(record.msg).startswith("Request body")


def a2a_routes(handler: LedgerRequestHandler, doors: Doors, shares: LoopShares) -> list[BaseRoute]:
    """Return the routes of JSON-RPC at ``/`` and of HTTP+JSON.

    The last one matches every path, so no route may follow it.
    """
    logging.getLogger(jsonrpc_dispatcher.__name__).addFilter(_hides_bodies)
    contexts = _Contexts()
    [inner] = create_jsonrpc_routes(handler, "/", context_builder=contexts, enable_v0_3_compat=True)
    rpc = _Rpc(inner.endpoint, Extensions(handler), doors, shares)
    rest = create_rest_routes(handler, context_builder=contexts, enable_v0_3_compat=True)
    return [
        Route("/", rpc.serve, methods=["POST"]),
        *_wrapped(rest, doors, shares),
    ]


def with_call(inner: Endpoint, doors: Doors) -> Endpoint:
    """Return an endpoint that puts the ``Call`` into the request's scope, then runs ``inner``."""

    async def serve(request: Request) -> Response:
        request.scope[CALL] = doors.call(request.scope[CALLER], request.headers, over_http=True)
        return await inner(request)

    return serve


def _wrapped(routes: list[BaseRoute], doors: Doors, shares: LoopShares) -> Iterator[BaseRoute]:
    for route in routes:
        if isinstance(route, Mount):
            inner = Router(list(_wrapped(route.routes, doors, shares)), redirect_slashes=False)
            yield Mount(route.path, app=inner)
        elif isinstance(route, Route):
            methods = sorted((route.methods or {"GET"}) - {"HEAD"})
            endpoint = with_call(_rest(route.endpoint, route.path, shares), doors)
            yield Route(route.path, endpoint, methods=methods)


def _rest(inner: Endpoint, path: str, shares: LoopShares) -> Endpoint:
    old = path.startswith(_OLD_PATHS)

    async def serve(request: Request) -> Response:
        call: Call = request.scope[CALL]
        try:
            if not await _is_json(request):
                return _refused(ContentTypeNotSupportedError(message=_NOT_JSON), Hint(415))
            _check_version_form(call)
            if not old and not call.header("a2a-version"):
                raise VersionNotSupportedError(message=f"{_NO_VERSION}use {_OLD_PATHS}")
            check_rest(path, request.method, await request.body(), request.query_params)
        except A2AError as error:
            return _refused(error)
        response = await _begun(await inner(request), call, build_rest_error_payload, shares)
        if call.hint is not None:
            response = _hinted(response, call.hint)
        wants = {request.headers.get(name, "") for name in ("content-type", "accept")}
        kind = response.headers.get("content-type", "")
        if kind.startswith("application/a2a+json") and not any("a2a+json" in one for one in wants):
            response.headers["content-type"] = "application/json"
        return response

    return serve


def _refused(error: A2AError, hint: Hint | None = None) -> Response:
    if isinstance(error, JSONParseError):
        # The SDK has no HTTP+JSON response for this error.
        error = InvalidRequestError(message=str(error))
    payload = build_rest_error_payload(error)
    response = JSONResponse(payload, status_code=payload["error"]["code"])
    return response if hint is None else _hinted(response, hint)


async def _begun(response: Any, call: Call, shape: Shape, shares: LoopShares) -> Response:
    """Return a stream when its first event is ready; if that event failed, an error response.

    The SDK starts a stream of 0.3 only when it is read, which is after its status has been sent.
    """
    body = getattr(response, "body_iterator", None)
    if body is None:
        return cast("Response", response)
    try:
        first = await anext(body)
    except StopAsyncIteration:
        first = None
    except Exception as error:  # noqa: BLE001 - nothing of it may reach a client
        answered, hint = to_a2a(error)
        return _refused(answered, call.hint or hint)

    async def whole() -> AsyncIterator[Any]:
        try:
            if first is not None:
                yield first
            async for item in shares.iterate(call.caller.share, body):
                yield item
        finally:
            await body.aclose()

    response.body_iterator = whole()
    _put_ids(response, call, shape)
    return cast("Response", response)


def _hidden(response: Response, call: Call) -> Response:
    """Return the response without the text of an exception inside the SDK; the log has it."""
    if call.hint is not None or not isinstance(response, JSONResponse):
        return response
    if str(_INTERNAL).encode() not in bytes(response.body):
        return response
    body = json.loads(bytes(response.body))
    if isinstance(body.get("error"), dict) and body["error"].get("code") == _INTERNAL:
        return JSONResponse(build_error_response(body.get("id"), InternalError()))
    return response


def _hinted(response: Response, hint: Hint) -> Response:
    """Return the response with the HTTP status of a hint, also in its body if that has a status."""
    response.status_code = hint.status
    response.headers.update(hint.headers)
    if isinstance(response, JSONResponse):
        body = json.loads(bytes(response.body))
        if isinstance(body, dict) and isinstance(body.get("error"), dict):
            body["error"] |= {"code": hint.status, "status": WORDS.get(hint.status, "UNKNOWN")}
            response.body = response.render(body)
            response.headers["content-length"] = f"{len(response.body)}"
    return response


class _Rpc:
    """The JSON-RPC endpoint: serves Holdfast's own methods, passes all others to the SDK."""

    def __init__(
        self, inner: Endpoint, extensions: Extensions, doors: Doors, shares: LoopShares
    ) -> None:
        self._inner = inner
        self._extensions = extensions
        self._doors = doors
        self._shares = shares

    async def serve(self, request: Request) -> Response:
        """Answer one JSON-RPC request."""
        call = self._doors.call(request.scope[CALLER], request.headers, over_http=True)
        request.scope[CALL] = call
        body: Any = None
        try:
            if not await _is_json(request):
                raise ContentTypeNotSupportedError(message=_NOT_JSON)
            _check_version_form(call)
            body = read_json(await request.body())
            method, params, number = read_call(body)
            response = await self._own(method, params, number, call)
            if response is None:
                _check_version(method, call)
                check_call(method, body)
                # Starlette's cache of json(), so that the body is parsed once. The SDK refuses
                # other fields than these.
                known = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                request._json = known  # noqa: SLF001
                response = await self._inner(request)
        except A2AError as error:
            response = JSONResponse(build_error_response(request_id(body), _rpc_error(error)))
        response = await _begun(
            response,
            call,
            lambda error: build_error_response(request_id(body), error),
            self._shares,
        )
        response = _hidden(response, call)
        if call.hint is not None and call.hint.status in {403, 429, 503}:
            response.status_code = call.hint.status
            response.headers.update(call.hint.headers)
        return response

    async def _own(
        self, method: str, params: dict[str, Any], number: str | int | None, call: Call
    ) -> Response | None:
        if method not in self._extensions:
            return None
        try:
            result = await self._extensions.serve(method, params, call)
        except A2AError as error:
            return JSONResponse(build_error_response(number, error))
        except Exception as error:  # noqa: BLE001 - nothing of it may reach a client
            answered, call.hint = to_a2a(error)
            return JSONResponse(build_error_response(number, answered))
        return JSONResponse({"jsonrpc": "2.0", "id": number, "result": result})


def _rpc_error(error: A2AError) -> A2AError | JSONRPCError:
    """Return the error in a type that the SDK can convert; it has another type for parse errors."""
    if isinstance(error, JSONParseError):
        return RpcParseError(message=str(error))
    return error


def _check_version_form(call: Call) -> None:
    """Raise if the version header is no version: the SDK would parse and echo it at any length."""
    version = call.header("a2a-version")
    if version and not _VERSION.fullmatch(version):
        raise VersionNotSupportedError(message="A2A-Version is not a version: send 1.0 or 0.3")


def _check_version(method: str, call: Call) -> None:
    if method in JsonRpcDispatcher.METHOD_TO_MODEL and not call.header("a2a-version"):
        raise VersionNotSupportedError(message=f"{_NO_VERSION}the methods of 0.3")


async def _is_json(request: Request) -> bool:
    """Return whether the request has no body or a JSON content type."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind in _JSON or not (kind or await request.body())


def _put_ids(response: Any, call: Call, shape: Shape) -> None:
    """Add its sequence number as the id to each event of a stream, for ``Last-Event-ID``.

    An error ends the stream with an error event, because the HTTP status has been sent already.
    """
    ids = call.event_ids
    body = getattr(response, "body_iterator", None)
    if body is None or not response.headers.get("content-type", "").startswith("text/event"):
        return

    async def numbered() -> AsyncIterator[ServerSentEvent]:
        try:
            async for item in body:
                given = {"data": item} if isinstance(item, str) else item
                given = given if isinstance(given, dict) else vars(given)
                named = given.get("event")
                yield ServerSentEvent(
                    given.get("data"),
                    event=named,
                    id=ids.popleft() if ids and named != "error" else None,
                )
            if call.failed is not None:
                yield _error_event(shape(call.failed))
        except Exception as error:  # noqa: BLE001 - nothing of it may reach a client
            yield _error_event(shape(to_a2a(error)[0]))
        finally:
            await body.aclose()

    response.body_iterator = numbered()


def _error_event(body: dict[str, Any]) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(body), event="error")
