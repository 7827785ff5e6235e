"""The paths of the service, around the SDK's own routes."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.server.jsonrpc_models import JSONParseError
from a2a.server.request_handlers import build_error_response
from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.types import a2a_pb2 as a2a
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InvalidParamsError,
    VersionNotSupportedError,
)
from sse_starlette.event import ServerSentEvent
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from holdfast.server.caller import CALL, CALLER, Call, Doors
from holdfast.server.errors import WORDS, Hint, to_a2a
from holdfast.server.extensions import Extensions
from holdfast.server.handler import LedgerRequestHandler

Endpoint = Callable[[Request], Awaitable[Response]]
_JSON = {"application/json", "application/a2a+json"}
_OLD_PATHS = "/v1/"
_NO_VERSION = (
    "without A2A-Version a request is of 0.3, and this is 1.0: send `A2A-Version: 1.0`, or "
)


class _Contexts(DefaultServerCallContextBuilder):
    """Lets a call reach the handler through the SDK's context."""

    def build(self, request: Request) -> ServerCallContext:
        """The SDK's context, with our call in it."""
        context = super().build(request)
        context.state[CALL] = request.scope[CALL]
        return context


def a2a_routes(handler: LedgerRequestHandler, doors: Doors) -> list[BaseRoute]:
    """JSON-RPC at ``/`` and HTTP+JSON; the last takes whatever is left, so it comes last."""
    contexts = _Contexts()
    [inner] = create_jsonrpc_routes(handler, "/", context_builder=contexts, enable_v0_3_compat=True)
    rpc = _Rpc(inner.endpoint, Extensions(handler), doors)
    rest = create_rest_routes(handler, context_builder=contexts, enable_v0_3_compat=True)
    return [
        Route("/", rpc.serve, methods=["POST"]),
        *_wrapped(rest, doors),
    ]


def with_call(inner: Endpoint, doors: Doors) -> Endpoint:
    """An endpoint that finds its call in the request's scope."""

    async def serve(request: Request) -> Response:
        request.scope[CALL] = doors.call(request.scope[CALLER], request.headers)
        return await inner(request)

    return serve


def _wrapped(routes: list[BaseRoute], doors: Doors) -> Iterator[BaseRoute]:
    for route in routes:
        if isinstance(route, Mount):
            yield Mount(route.path, routes=list(_wrapped(route.routes, doors)))
        elif isinstance(route, Route):
            methods = sorted((route.methods or {"GET"}) - {"HEAD"})
            old = route.path.startswith(_OLD_PATHS)
            yield Route(
                route.path, with_call(_rest(route.endpoint, old=old), doors), methods=methods
            )


def _rest(inner: Endpoint, *, old: bool) -> Endpoint:
    async def serve(request: Request) -> Response:
        call: Call = request.scope[CALL]
        if not await _is_json(request):
            payload = build_rest_error_payload(ContentTypeNotSupportedError())
            payload["error"]["code"] = 415
            return JSONResponse(payload, status_code=415)
        if not old and not call.header("a2a-version"):
            lacking = VersionNotSupportedError(message=f"{_NO_VERSION}use {_OLD_PATHS}")
            return JSONResponse(build_rest_error_payload(lacking), status_code=400)
        if wrong := _unknown_status(request.query_params.get("status")):
            return JSONResponse(build_rest_error_payload(wrong), status_code=400)
        response = await inner(request)
        _put_ids(response, call.event_ids)
        if call.hint is not None:
            response = _hinted(response, call.hint)
        wants = {request.headers.get(name, "") for name in ("content-type", "accept")}
        kind = response.headers.get("content-type", "")
        if kind.startswith("application/a2a+json") and not any("a2a+json" in one for one in wants):
            response.headers["content-type"] = "application/json"
        return response

    return serve


def _hinted(response: Response, hint: Hint) -> Response:
    """The same with the status of a hint, in its body too where that tells one."""
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
    """JSON-RPC: our own methods here, all others by the SDK."""

    def __init__(self, inner: Endpoint, extensions: Extensions, doors: Doors) -> None:
        self._inner = inner
        self._extensions = extensions
        self._doors = doors

    async def serve(self, request: Request) -> Response:
        """Answer one JSON-RPC request."""
        call = self._doors.call(request.scope[CALLER], request.headers)
        request.scope[CALL] = call
        if not await _is_json(request):
            return JSONResponse(build_error_response(None, ContentTypeNotSupportedError()))
        try:
            body = json.loads(await request.body())
        except RecursionError:
            return JSONResponse(
                build_error_response(None, JSONParseError(message="nested too deeply"))
            )
        except ValueError:
            # The SDK says what is wrong with it.
            body = None
        response = await self._own(body, call) if isinstance(body, dict) else None
        if response is None:
            response = await self._inner(request)
        _put_ids(response, call.event_ids)
        if call.hint is not None and call.hint.status == 503:
            response.status_code = call.hint.status
            response.headers.update(call.hint.headers)
        return response

    async def _own(self, body: dict[str, Any], call: Call) -> Response | None:
        method, params, number = body.get("method"), body.get("params"), body.get("id")
        if isinstance(number, bool) or not isinstance(number, (str, int)):
            number = None
        modern = isinstance(method, str) and method in JsonRpcDispatcher.METHOD_TO_MODEL
        if modern and not call.header("a2a-version"):
            lacking = VersionNotSupportedError(message=f"{_NO_VERSION}the methods of 0.3")
            return JSONResponse(build_error_response(number, lacking))
        if method == "ListTasks" and isinstance(params, dict):
            wrong = _unknown_status(params.get("status"))
            return JSONResponse(build_error_response(number, wrong)) if wrong else None
        if not isinstance(method, str) or method not in self._extensions:
            return None
        try:
            result = await self._extensions.serve(method, params, call)
        except A2AError as error:
            return JSONResponse(build_error_response(number, error))
        except Exception as error:  # noqa: BLE001 - nothing of it may reach a client
            told, call.hint = to_a2a(error)
            return JSONResponse(build_error_response(number, told))
        return JSONResponse({"jsonrpc": "2.0", "id": number, "result": result})


async def _is_json(request: Request) -> bool:
    """Whether what was sent, if anything was, is JSON by its own account."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind in _JSON or not (kind or await request.body())


def _unknown_status(given: object) -> A2AError | None:
    """What is wrong with a filter by state: the SDK would drop a state that it does not know."""
    names: list[str] = a2a.TaskState.keys()
    numbers: list[int] = a2a.TaskState.values()
    if given is None or given in names or given in numbers or given in [*map(str, numbers)]:
        return None
    return InvalidParamsError(message=f"status is one of {', '.join(names)}")


def _put_ids(response: Any, ids: deque[str]) -> None:
    """Let each event of a stream carry its sequence, for ``Last-Event-ID``."""
    body = getattr(response, "body_iterator", None)
    if body is None or not response.headers.get("content-type", "").startswith("text/event"):
        return

    async def numbered() -> AsyncIterator[ServerSentEvent]:
        try:
            async for item in body:
                given = item if isinstance(item, dict) else vars(item)
                named = given.get("event")
                yield ServerSentEvent(
                    given.get("data"),
                    event=named,
                    id=ids.popleft() if ids and named != "error" else None,
                )
        finally:
            await body.aclose()

    response.body_iterator = numbered()
