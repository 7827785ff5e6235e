"""A request that is refused: the error names the field as the client wrote it, and the fix."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import httpx
import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc

from holdfast import State
from holdfast.server.service import Service
from holdfast.testing.postgres_server import free_port
from tests.server.running import MODERN, example_app, http_client, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROLES = "message.role: must be ROLE_USER or ROLE_AGENT"
OLD_ROLES = "message.role: must be agent or user"
JSON_ONLY = "Content-Type: must be application/json or application/a2a+json"


@pytest_asyncio.fixture
async def service(state: State) -> AsyncIterator[Service]:
    async with serving(example_app(), state, grpc_port=free_port()) as found:
        yield found


@pytest_asyncio.fixture
async def http(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with http_client(base_url=service.url, timeout=60) as client:
        yield client


async def _rpc(http: httpx.AsyncClient, method: str, params: Any, **headers: str) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer: dict[str, Any] = (await http.post("/", json=body, headers=headers)).json()
    return answer


def _send(**fields: Any) -> dict[str, Any]:
    """A message of 1.0 with these fields changed; ``None`` leaves one out."""
    whole = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "say hi"}]} | fields
    return {"message": {name: value for name, value in whole.items() if value is not None}}


def _old_send(**fields: Any) -> dict[str, Any]:
    whole = {"messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "x"}]} | fields
    return {"message": {name: value for name, value in whole.items() if value is not None}}


WRONG_SENDS = [
    (_send(role="user"), ROLES),
    (_send(role=None), ROLES),
    (_send(role=99), ROLES),
    (_send(role=True), ROLES),
    (_send(messageId=None), "message.messageId: is required"),
    (_send(messageId=None, role=None), f"message.messageId: is required; {ROLES}"),
    (_send(messageId=7), "message.messageId: must be text"),
    (_send(messageId=None, message_id=7), "message.message_id: must be text"),
    (_send(messageId="m" * 600), "message.messageId: must be at most 512 bytes of UTF-8"),
    (
        _send(contextId="a\0b"),
        "message.contextId: must not contain the control character '\\x00'",
    ),
    (_send(parts=None), "message.parts: must not be empty"),
    (_send(parts={"text": "x"}), "message.parts: must be a list"),
    (_send(parts=["x"]), "message.parts[0]: must be an object"),
    (_send(parts=[{"text": "x"}, {"text": 5}]), "message.parts[1].text: must be text"),
    (
        _send(parts=[{"text": "x", "url": "y"}]),
        "message.parts[0]: must have only one of text, raw, url or data",
    ),
    (_send(parts=[{"raw": "***"}]), "message.parts[0].raw: must be base64"),
    (_send(metadata=[]), "message.metadata: must be an object"),
    (_send(referenceTaskIds=["t"] * 51), "message.referenceTaskIds: must be at most 50 tasks"),
    ({"message": "hi"}, "message: must be an object"),
    ({}, "message: is required"),
    (
        _send() | {"configuration": {"historyLength": 1.5}},
        "configuration.historyLength: must be a whole number",
    ),
    (
        _send() | {"configuration": {"historyLength": 1 << 40}},
        "configuration.historyLength: must be from -2147483648 to 2147483647",
    ),
    (
        _send() | {"configuration": {"historyLength": -1}},
        "configuration.historyLength: must be 0 or more",
    ),
    (
        _send() | {"configuration": {"returnImmediately": "yes"}},
        "configuration.returnImmediately: must be true or false",
    ),
    (
        _send() | {"configuration": {"taskPushNotificationConfig": {}}},
        "configuration.taskPushNotificationConfig.url: is required",
    ),
    (
        _send(metadata={"holdfast.agent": "tester"}),
        (
            "message.metadata.holdfast.agent: write it into the metadata of the request, "
            "beside message"
        ),
    ),
    (
        _send() | {"metadata": {"holdfast.agent": "nobody"}},
        "metadata.holdfast.agent: there is no such agent: must be one of tester",
    ),
]


async def test_a_wrong_send_names_the_field_and_the_fix(
    http: httpx.AsyncClient, state: State
) -> None:
    for params, text in WRONG_SENDS:
        error = (await _rpc(http, "SendMessage", params, **MODERN))["error"]
        assert (error["code"], error["message"]) == (-32602, text), params
        rest = await http.post("/message:send", json=params, headers=MODERN)
        assert (rest.status_code, rest.json()["error"]["message"]) == (400, text), params
    assert (await state.tasks.list(count=True)).total == 0


async def test_the_details_of_an_error_have_the_names_of_the_wire(http: httpx.AsyncClient) -> None:
    error = (await _rpc(http, "SendMessage", _send(messageId=None), **MODERN))["error"]
    [_, violations] = error["data"]
    assert violations["fieldViolations"] == [
        {"field": "message.messageId", "description": "is required"}
    ]


async def test_a_wrong_send_of_0_3_is_answered_in_the_words_of_0_3(
    http: httpx.AsyncClient, state: State
) -> None:
    for params, text in [
        (_old_send(role="ROLE_USER"), OLD_ROLES),
        (_old_send(role=None), OLD_ROLES),
        (_old_send(messageId=None), "message.messageId: is required"),
        (_old_send(messageId=7), "message.messageId: must be text"),
        (_old_send(parts=[]), "message.parts: must not be empty"),
        (_old_send(parts=["x"]), "message.parts[0]: must be an object"),
        (
            _old_send(parts=[{"kind": "video"}]),
            "message.parts[0].kind: must be text, file or data",
        ),
        (_old_send(parts=[{"kind": "text", "text": 5}]), "message.parts[0].text: must be text"),
        (
            _old_send(parts=[{"kind": "data", "data": []}]),
            "message.parts[0].data: must be an object",
        ),
        (
            _old_send(parts=[{"kind": "file", "file": {"bytes": "***"}}]),
            "message.parts[0].file.bytes: must be base64",
        ),
        (
            _old_send() | {"configuration": {"pushNotificationConfig": {}}},
            "configuration.pushNotificationConfig.url: is required",
        ),
        ({"message": "hi"}, "message: must be an object"),
    ]:
        error = (await _rpc(http, "message/send", params))["error"]
        assert (error["code"], error["message"]) == (-32602, text), params
    for said, text in [
        ({"messageId": "m", "role": "user", "content": [{"text": "x"}]}, ROLES),
        ({"messageId": "m", "content": [{"text": "x"}]}, ROLES),
        ({"role": "ROLE_USER", "content": [{"text": "x"}]}, "message.messageId: is required"),
        ({"messageId": "m", "role": "ROLE_USER"}, "message.content: must not be empty"),
    ]:
        rest = await http.post("/v1/message:send", json={"message": said})
        assert (rest.status_code, rest.json()["error"]["message"]) == (400, text), said
    assert (await state.tasks.list(count=True)).total == 0


@pytest.mark.parametrize(
    ("method", "params", "text"),
    [
        ("GetTask", {}, "id: is required"),
        ("GetTask", {"id": "x" * 600}, "id: must be at most 512 bytes of UTF-8"),
        ("ListTasks", {"pageSize": 0}, "pageSize: must be from 1 to 100"),
        ("ListTasks", {"pageToken": "zz"}, "pageToken: is not one that this listing returned"),
        (
            "ListTasks",
            {"statusTimestampAfter": "yesterday"},
            "statusTimestampAfter: must be a time such as 2026-01-31T12:00:00Z",
        ),
        ("CreateTaskPushNotificationConfig", {"url": "https://x"}, "taskId: must not be empty"),
        ("contexts/get", {}, "contextId: is required"),
        ("contexts/list", {"pageSize": "x"}, "pageSize: must be a whole number"),
        ("contexts/list", {"pageSize": 101}, "pageSize: must be from 1 to 100"),
        ("tasks/feedback", {"id": "t", "text": 5}, "text: must be text"),
        ("tasks/pause", {"id": "\0"}, "id: must not contain the control character '\\x00'"),
        (
            "tasks/list",
            {"limit": 1},
            (
                "limit: is not a field here: known are tenant, contextId, status, pageSize, "
                "pageToken, historyLength, statusTimestampAfter, includeArtifacts"
            ),
        ),
    ],
)
async def test_other_wrong_params_name_the_field_and_the_fix(
    http: httpx.AsyncClient, method: str, params: dict[str, Any], text: str
) -> None:
    error = (await _rpc(http, method, params, **MODERN))["error"]
    assert (error["code"], error["message"]) == (-32602, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("pageSize=x", "pageSize: must be a whole number"),
        ("includeArtifacts=maybe", "includeArtifacts: must be true or false"),
        ("historyLength=-1", "historyLength: must be 0 or more"),
        ("pageToken=zz", "pageToken: is not one that this listing returned"),
    ],
)
async def test_a_wrong_query_names_the_parameter_and_the_fix(
    http: httpx.AsyncClient, query: str, text: str
) -> None:
    answer = await http.get(f"/tasks?{query}", headers=MODERN)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, text)


async def test_a_wrong_state_lists_the_known_ones(http: httpx.AsyncClient) -> None:
    error = (await _rpc(http, "ListTasks", {"status": "done"}, **MODERN))["error"]
    assert error["message"].startswith("status: must be TASK_STATE_SUBMITTED, ")
    rest = await http.get("/tasks?status=done", headers=MODERN)
    assert rest.json()["error"]["message"] == error["message"]


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded"])
async def test_a_wrong_content_type_is_answered_with_the_right_one(
    http: httpx.AsyncClient, kind: str
) -> None:
    headers = {**MODERN, "Content-Type": kind}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t"}})
    rpc = (await http.post("/", content=body, headers=headers)).json()["error"]
    assert (rpc["code"], rpc["message"]) == (-32005, JSON_ONLY)
    rest = await http.post("/message:send", content=json.dumps(_send()), headers=headers)
    assert (rest.status_code, rest.json()["error"]["message"]) == (415, JSON_ONLY)


async def test_an_unknown_method_is_answered_with_the_nearest_one(http: httpx.AsyncClient) -> None:
    for given, meant in (("sendMessage", "SendMessage"), ("tasks/gett", "tasks/get")):
        error = (await _rpc(http, given, {}, **MODERN))["error"]
        assert error["code"] == -32601
        assert error["message"].endswith(f"did you mean {meant}?")
    error = (await _rpc(http, "x" * 5000, {}, **MODERN))["error"]
    assert "SendMessage, SendStreamingMessage, GetTask" in error["message"]


async def test_over_grpc_an_error_has_the_names_of_protobuf(service: Service) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{service.options.grpc_port}") as channel:
        stub: Any = a2a_pb2_grpc.A2AServiceStub(channel)  # type: ignore[no-untyped-call]
        said = a2a.Message(role=a2a.ROLE_USER, parts=[a2a.Part(text="x")])
        with pytest.raises(grpc.aio.AioRpcError) as wrong:
            await stub.SendMessage(a2a.SendMessageRequest(message=said))
        assert wrong.value.details() == "message.message_id: is required"
        with pytest.raises(grpc.aio.AioRpcError) as wrong:
            await stub.ListTasks(a2a.ListTasksRequest(page_size=0))
        assert wrong.value.details() == "page_size: must be from 1 to 100"
