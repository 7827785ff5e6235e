"""Reads requests: JSON of limited size and depth that fits A2A's schema.

The SDK parses a request too, but for one that it cannot parse it sends the text of a Python
exception and logs a traceback. So a request is read here first, and only one that can be parsed is
passed on.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, TypeVar

# Must be the first import: the SDK's packages import each other in a circle that works only if
# entered here.
import a2a.server.routes.jsonrpc_dispatcher as sdk_dispatcher
from a2a.compat.v0_3 import a2a_v0_3_pb2 as old_a2a
from a2a.compat.v0_3.jsonrpc_adapter import JSONRPC03Adapter
from a2a.compat.v0_3.proto_utils import FromProto
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import (
    A2AError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    MethodNotFoundError,
)
from a2a.utils.proto_utils import parse_params
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message as ProtoMessage
from pydantic import ValidationError
from starlette.datastructures import QueryParams

from holdfast.server.json_values import MAX_VALUES
from holdfast.server.old_schema import check_old_files, check_old_send, old_misfit
from holdfast.server.schema import check_query, check_schema
from holdfast.values.codec import MAX_DEPTH

M = TypeVar("M", bound=ProtoMessage)
MAX_PARTS = 1_000
"""Maximum parts of one message."""

_LEVELS = MAX_DEPTH + 8
"""Maximum nesting of a request: that of a stored value, plus the levels of the request around it.
"""

_MISFIT = "does not fit the schema of A2A"
_BODIES: dict[str, type[ProtoMessage]] = {
    "/message:send": a2a.SendMessageRequest,
    "/message:stream": a2a.SendMessageRequest,
    "/tasks/{id}/pushNotificationConfigs": a2a.TaskPushNotificationConfig,
    "/v1/message:send": old_a2a.SendMessageRequest,
    "/v1/message:stream": old_a2a.SendMessageRequest,
    "/v1/tasks/{id}/pushNotificationConfigs": old_a2a.CreateTaskPushNotificationConfigRequest,
}
_QUERIES: dict[str, type[ProtoMessage]] = {
    "/tasks": a2a.ListTasksRequest,
    "/tasks/{id}": a2a.GetTaskRequest,
    "/tasks/{id}/pushNotificationConfigs": a2a.ListTaskPushNotificationConfigsRequest,
    "/v1/tasks/{id}": a2a.GetTaskRequest,
}


def read_json(body: bytes) -> Any:
    """Return the JSON value of a request body. Raises if it is too large or too deep.

    >>> read_json(b'{"id": 1}')
    {'id': 1}
    """
    try:
        value = json.loads(body.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise JSONParseError(message="the body is not UTF-8") from None
    except RecursionError:
        raise JSONParseError(message="the body is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise JSONParseError(message=f"the body is not JSON: see line {error.lineno}") from None
    except ValueError:
        # A whole number with more digits than Python converts.
        raise JSONParseError(message="the body holds a number of too many digits") from None
    _check_values(value)
    return value


def _refuse_constant(name: str) -> None:
    raise JSONParseError(message=f"the body holds {name}, which is not JSON")


def _check_values(value: Any) -> None:
    """Raise for too many values or levels, text that is not UTF-8, or numbers beyond a double."""
    left, level, depth = MAX_VALUES, [value], 0
    while level:
        depth += 1
        left -= len(level)
        if left < 0:
            raise InvalidParamsError(message=f"a request has at most {MAX_VALUES} JSON values")
        if depth > _LEVELS:
            raise InvalidParamsError(message=f"the body is nested deeper than {_LEVELS} levels")
        inner: list[Any] = []
        for one in level:
            if isinstance(one, list):
                inner += one
            elif isinstance(one, dict):
                inner += one.values()
                for key in one:
                    _check_scalar(key)
            else:
                _check_scalar(one)
        level = inner


def _check_scalar(value: Any) -> None:
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidParamsError(message="a text holds a lone surrogate") from None
    elif isinstance(value, int) and value.bit_length() > 1_023:
        raise InvalidParamsError(message="a number is too large")


def read_call(body: Any) -> tuple[str, dict[str, Any], str | int | None]:
    """Return method, params and id of a JSON-RPC request. Raises if they do not fit the schema.

    >>> read_call({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t1"}})
    ('GetTask', {'id': 't1'}, 1)
    """
    if isinstance(body, list):
        raise InvalidRequestError(message="batches are not supported: send one request")
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        raise InvalidRequestError(message='a request is an object with "jsonrpc": "2.0"')
    method, params = body.get("method"), body.get("params")
    if not isinstance(method, str) or not method:
        raise InvalidRequestError(message="method must be text")
    if request_id(body) is None and body.get("id") is not None:
        raise InvalidRequestError(message="id must be text, a whole number or null")
    if params is not None and not isinstance(params, dict):
        raise InvalidParamsError(message="params must be an object")
    return method, params or {}, request_id(body)


def request_id(body: Any) -> str | int | None:
    """Return the id of a JSON-RPC request; ``None`` if it has no id that can be sent back.

    >>> request_id({"id": 7}), request_id([]), request_id({"id": True})
    (7, None, None)
    """
    found = body.get("id") if isinstance(body, dict) else None
    return found if isinstance(found, (str, int)) and not isinstance(found, bool) else None


def check_call(method: str, body: dict[str, Any]) -> None:
    """Raise for a JSON-RPC request of A2A that does not fit the schema of its method."""
    params = body.get("params") or {}
    _check_parts(params.get("message"))
    if method in sdk_dispatcher.JsonRpcDispatcher.METHOD_TO_MODEL:
        parsed(params, sdk_dispatcher.JsonRpcDispatcher.METHOD_TO_MODEL[method])
    elif method in JSONRPC03Adapter.METHOD_TO_MODEL:
        model: Any = JSONRPC03Adapter.METHOD_TO_MODEL[method]
        try:
            model.model_validate(body)
        except ValidationError as error:
            raise InvalidParamsError(message=old_misfit(error, body)) from None
        check_old_files(params)
    else:
        raise MethodNotFoundError(message=_no_method(method))


def _no_method(method: str) -> str:
    modern = [*sdk_dispatcher.JsonRpcDispatcher.METHOD_TO_MODEL]
    near = difflib.get_close_matches(method[:64], [*modern, *JSONRPC03Adapter.METHOD_TO_MODEL], 1)
    if near:
        return f"method: there is no such method: did you mean {near[0]}?"
    return f"method: there is no such method: A2A has {', '.join(modern)}"


def check_rest(path: str, method: str, body: bytes, query: QueryParams) -> None:
    """Raise for an HTTP+JSON request that does not fit the schema of its path."""
    if method in {"POST", "PUT"} and (model := _BODIES.get(path)):
        value = read_json(body)
        if not isinstance(value, dict):
            raise InvalidParamsError(message="the body must be an object")
        for name in ("message", "request"):
            _check_parts(value.get(name))
        _check_converts(parsed(value, model))
    elif method in {"GET", "HEAD"} and (model := _QUERIES.get(path)):
        check_query(query, model.DESCRIPTOR)
        try:
            parse_params(query, model())
        except (ParseError, ValueError, TypeError, OverflowError):
            raise InvalidParamsError(message=f"the query {_MISFIT}") from None


def _check_converts(message: ProtoMessage) -> None:
    """Raise for a message of 0.3 that fits its schema but cannot be converted to 1.0."""
    try:
        if isinstance(message, old_a2a.SendMessageRequest):
            check_old_send(message)
            FromProto.message_send_params(message)
        elif isinstance(message, old_a2a.CreateTaskPushNotificationConfigRequest):
            FromProto.task_push_notification_config_request(message)
    except InvalidParamsError:
        raise
    except (A2AError, ValueError, TypeError, AttributeError, LookupError):
        raise InvalidParamsError(message=f"the request {_MISFIT} 0.3") from None


def _check_parts(message: Any) -> None:
    given = message if isinstance(message, Mapping) else {}
    for name in ("parts", "content"):
        check_part_count(len(given.get(name) or ()) if isinstance(given.get(name), list) else 0)


def check_part_count(count: int) -> None:
    """Raise for a message with more than ``MAX_PARTS`` parts.

    >>> check_part_count(1)
    """
    if count > MAX_PARTS:
        raise InvalidParamsError(
            message=f"message.parts: must have at most {MAX_PARTS} parts: send several messages"
        )


def parsed(value: dict[str, Any], model: type[M], *, strict: bool = False) -> M:
    """Parse an A2A message from JSON; unknown fields are ignored unless ``strict``.

    >>> parsed({"id": "t1"}, a2a.GetTaskRequest).id
    't1'
    """
    check_schema(value, model.DESCRIPTOR, strict=strict)
    try:
        message: M = model()
        ParseDict(value, message, ignore_unknown_fields=not strict)
    except (ParseError, ValueError, TypeError, OverflowError, AttributeError):
        raise InvalidParamsError(message=f"the request {_MISFIT}") from None
    return message
