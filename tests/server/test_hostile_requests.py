"""What a client cannot mean gets a typed error, quickly, and no traceback."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

import holdfast
from holdfast.server.json_values import MAX_VALUES
from holdfast.server.reading import MAX_PARTS
from tests.server.running import MODERN, example_app, http_client, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")
INTERNALS = (
    *("Traceback", "' object", "NoneType", "unhashable", "codec", "int()", "convert"),
    *("_pb2", "pydantic", "starlette", "a2a.", "lf.a2a", "line 1 column"),
)
JSON = {"Content-Type": "application/json"}


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with (
        holdfast.open("memory:") as state,
        serving(example_app(), state) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as client,
    ):
        yield client


def _message(**fields: Any) -> dict[str, Any]:
    whole = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
    return {"message": whole | fields}


def _deep(levels: int) -> Any:
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return found


SENDS: dict[str, Any] = {
    "message is a number": {"message": 7},
    "message is a list": {"message": []},
    "no message": {},
    "parts is a number": _message(parts=7),
    "parts is an object": _message(parts={"a": 1}),
    "part is null": _message(parts=[None]),
    "part is a number": _message(parts=[7]),
    "text is a number": _message(parts=[{"text": 7}]),
    "raw is a number": _message(parts=[{"raw": 7}]),
    "two contents": _message(parts=[{"text": "a", "data": 1}]),
    "role is a list": _message(role=[]),
    "role is an object": _message(role={"a": 1}),
    "metadata is a list": _message(metadata=[]),
    "huge number": _message(metadata={"a": 10**400}),
    "huge number in data": _message(parts=[{"data": 10**400}]),
    "huge history": _message() | {"configuration": {"historyLength": 10**30}},
    "history of a half": _message() | {"configuration": {"historyLength": 1.5}},
    "history is text": _message() | {"configuration": {"historyLength": "x"}},
    "lone surrogate": _message(messageId="\ud800"),
    "surrogate in a key": _message(metadata={"\ud800": 1}),
    "deep data": _message(parts=[{"data": _deep(90)}]),
    "deep metadata": _message(metadata={"a": _deep(90)}),
    "many parts": _message(parts=[{"text": "x"}] * (MAX_PARTS + 1)),
    "many values": _message(parts=[{"data": [1] * MAX_VALUES}]),
    "many references": _message(referenceTaskIds=["t"] * 1000),
    "impossible hook": _message()
    | {"configuration": {"taskPushNotificationConfig": {"url": "https://xn--/"}}},
}
BODIES: dict[str, bytes] = {
    "invalid UTF-8": b'{"jsonrpc": "2.0", "id": 1, "method": "\xff\xfe"}',
    "UTF-16": json.dumps({"jsonrpc": "2.0"}).encode("utf-16"),
    "too many digits": b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b"}",
    "NaN": b'{"jsonrpc": "2.0", "id": NaN, "method": "GetTask"}',
    "very deep": b"[" * 100_000,
    "deep": b"[" * 500 + b"]" * 500,
    "empty": b"",
    "a number": b"7",
    "a text": b'"x"',
    "null": b"null",
    "batch": b'[{"jsonrpc": "2.0", "id": 1, "method": "GetTask"}]',
    "no version": b'{"id": 1, "method": "GetTask"}',
    "method is a list": b'{"jsonrpc": "2.0", "id": 1, "method": []}',
    "method is empty": b'{"jsonrpc": "2.0", "id": 1, "method": ""}',
    "id is a list": b'{"jsonrpc": "2.0", "id": [1], "method": "GetTask"}',
    "id is a surrogate": b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "GetTask"}',
    "id is huge": b'{"jsonrpc": "2.0", "id": ' + b"9" * 4000 + b', "method": "x"}',
    "params is a list": b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": [1]}',
    "params is text": b'{"jsonrpc": "2.0", "id": 1, "method": "contexts/list", "params": "x"}',
    "id of a task is a list": b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":[]}}',
    "old and wrong": b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":7}}',
    "old and empty": b'{"jsonrpc":"2.0","id":1,"method":"message/send"}',
    "wrong page": b'{"jsonrpc":"2.0","id":1,"method":"tasks/list","params":{"pageSize":[]}}',
}
PATHS: dict[str, tuple[str, str, int]] = {
    "unknown path": ("GET", "/no/such/path/at/all", 404),
    "unknown method": ("PUT", "/health", 405),
    "unknown subscription": ("GET", "/tasks/nobody:subscribe", 404),
    "old unknown subscription": ("GET", "/v1/tasks/nobody:subscribe", 404),
    "old unknown subscription by POST": ("POST", "/v1/tasks/nobody:subscribe", 404),
    "old subscription of no id": ("GET", "/v1/tasks/%00:subscribe", 400),
    "subscription of no id": ("GET", "/tasks/%00:subscribe", 400),
    "invalid UTF-8": ("GET", "/tasks/%ff%fe", 404),
    "wrong page size": ("GET", "/tasks?pageSize=many", 400),
    "huge page size": ("GET", "/tasks?pageSize=99999999999999999999", 400),
    "wrong time": ("GET", "/tasks?statusTimestampAfter=never", 400),
    "wrong history": ("GET", "/tasks/t1?historyLength=x", 400),
    "old wrong history": ("GET", "/v1/tasks/t1?historyLength=x", 400),
    "wrong page of configs": ("GET", "/tasks/t1/pushNotificationConfigs?pageSize=x", 400),
    "another tenant": ("GET", "/another/tasks", 400),
    "no blob": ("GET", "/blobs/%00?task=%00", 404),
}

VERSIONS = {
    "5,000 digits": "9" * 5_000,
    "5,000 digits after 1": "1." + "9" * 5_000,
    "many numbers": ".".join("1" * 2_000),
    "an epoch": "1!1.0",
    "a word": "latest",
    "a local part": "1.0+" + "a" * 2_000,
    "two versions": "1.0, 0.3",
}


def _check(answer: httpx.Response, caplog: pytest.LogCaptureFixture, what: str) -> None:
    assert answer.headers["content-type"].startswith("application/json"), what
    reply = answer.json()["error"]["message"]
    assert not any(word in answer.text for word in INTERNALS), (what, answer.text)
    assert reply, what
    traced = [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]
    assert not traced, (what, traced)


@pytest.mark.parametrize("what", SENDS)
async def test_a_send_that_does_not_fit_is_refused_in_plain_words(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    body = json.dumps(SENDS[what])
    for path in ("/message:send", "/message:stream"):
        answer = await http.post(path, content=body, headers=JSON)
        assert answer.status_code == (404 if what == "many references" else 400) or (
            what == "many references" and answer.status_code == 400
        ), what
        _check(answer, caplog, what)
    for method in ("SendMessage", "SendStreamingMessage"):
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": SENDS[what]}
        answer = await http.post("/", content=json.dumps(call), headers=JSON)
        assert answer.json()["error"]["code"] == -32602, answer.text
        _check(answer, caplog, what)


@pytest.mark.parametrize("what", SENDS)
async def test_a_send_of_0_3_that_does_not_fit_is_refused_in_plain_words(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    old = {"A2A-Version": "", **JSON}
    for path in ("/v1/message:send", "/v1/message:stream"):
        given = json.loads(json.dumps(SENDS[what]).replace('"parts"', '"content"'))
        given = {"request" if key == "message" else key: one for key, one in given.items()}
        answer = await http.post(path, content=json.dumps(given), headers=old)
        if answer.status_code != 200:
            assert answer.status_code == 400, answer.text
            _check(answer, caplog, what)
    for method in ("message/send", "message/stream"):
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": SENDS[what]}
        answer = await http.post("/", content=json.dumps(call), headers=old)
        assert answer.json()["error"]["code"] in {-32602, -32600}, answer.text
        _check(answer, caplog, what)


@pytest.mark.parametrize("what", BODIES)
async def test_a_body_that_is_no_request_is_refused_in_plain_words(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    answer = await http.post("/", content=BODIES[what], headers=JSON)
    assert answer.json()["error"]["code"] in {-32700, -32600, -32602}
    _check(answer, caplog, what)
    answer = await http.post("/message:send", content=BODIES[what], headers=JSON)
    assert answer.status_code == 400
    _check(answer, caplog, what)


@pytest.mark.parametrize("what", PATHS)
async def test_a_path_that_leads_nowhere_is_answered_in_json(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    method, path, code = PATHS[what]
    headers = {"A2A-Version": ""} if path.startswith("/v1") else {}
    answer = await http.request(method, path, headers=headers)
    assert answer.status_code == code, answer.text
    _check(answer, caplog, what)


async def test_as_many_parts_as_are_allowed_are_taken(http: httpx.AsyncClient) -> None:
    body = _message(parts=[{"text": "x"}] * MAX_PARTS)
    answer = await http.post("/message:send", json=body)
    assert answer.status_code == 200
    assert len(answer.json()["task"]["history"][0]["parts"]) == MAX_PARTS


async def test_others_are_answered_while_many_parts_are_refused(http: httpx.AsyncClient) -> None:
    body = json.dumps(_message(parts=[{"text": "x"}] * 100_000))
    sends = [http.post("/message:send", content=body, headers=JSON) for _ in range(5)]
    answers = await asyncio.gather(*sends, http.get("/health"))
    assert [one.status_code for one in answers] == [400] * 5 + [200]


@pytest.mark.parametrize("what", VERSIONS)
async def test_a_version_that_is_none_is_refused_in_plain_words_and_not_repeated(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    version = {"A2A-Version": VERSIONS[what]}
    for method in ("GetTask", "tasks/get", "tasks/list"):
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": "t"}}
        answer = await http.post("/", json=call, headers=version)
        assert answer.json()["error"]["code"] == -32009, answer.text
        _check(answer, caplog, what)
        assert VERSIONS[what] not in answer.text + caplog.text
    for path in ("/tasks/t", "/v1/tasks/t", "/extendedAgentCard"):
        answer = await http.get(path, headers=version)
        assert answer.status_code == 400, answer.text
        _check(answer, caplog, what)
        assert VERSIONS[what] not in answer.text + caplog.text


NUMBER = "9" * 5_000
HEADERS: dict[str, dict[str, str]] = {
    "Last-Event-ID": {"Last-Event-ID": NUMBER},
    "Idempotency-Key": {"Idempotency-Key": NUMBER},
    "A2A-Extensions": {"A2A-Extensions": ",".join(["x"] * 5_000)},
    "Range": {"Range": f"bytes={NUMBER}-"},
    "If-Modified-Since": {"If-Modified-Since": NUMBER},
    "If-None-Match": {"If-None-Match": NUMBER},
    "Accept": {"Accept": f"application/json;q={NUMBER}"},
    "Expect": {"Expect": NUMBER},
    "Keep-Alive": {"Keep-Alive": f"timeout={NUMBER}"},
    "Content-Type": {"Content-Type": f"application/json; charset={NUMBER}"},
}


@pytest.mark.parametrize("what", HEADERS)
async def test_no_header_of_5000_digits_leaves_a_traceback(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    send = json.dumps(_message())
    for path in ("/message:send", "/message:stream"):
        answer = await http.post(path, content=send, headers=JSON | HEADERS[what])
        assert answer.status_code in {200, 400, 415}, answer.text
    for path in ("/tasks/t", "/health", "/metrics", "/.well-known/agent-card.json", "/blobs/b"):
        answer = await http.get(path, headers=HEADERS[what])
        assert answer.status_code in {200, 404}, answer.text
    assert not [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    "path",
    [
        *("/tasks?pageSize=", "/tasks?historyLength=", "/tasks?statusTimestampAfter="),
        *("/tasks/t?historyLength=", "/v1/tasks/t?historyLength="),
        *("/tasks/t/pushNotificationConfigs?pageSize=", "/tasks?pageToken="),
    ],
)
async def test_no_query_of_5000_digits_leaves_a_traceback(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    answer = await http.get(path + NUMBER, headers={"A2A-Version": ""} if "v1" in path else {})
    assert answer.status_code == 400, answer.text
    _check(answer, caplog, path)
