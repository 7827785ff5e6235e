"""What the service says in HTTP's own words, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

import holdfast
from holdfast import ChatMessage, HoldfastError, State
from holdfast.contracts.tasks.ledger import Ledger
from holdfast.errors import BackPressureError, UnavailableError
from holdfast.server.errors import to_a2a
from holdfast.server.service import Service
from holdfast.values import errors
from holdfast.values.owners import owned_id
from tests.server.running import MODERN, example_app, http_client, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture
async def memory() -> AsyncIterator[State]:
    async with holdfast.open("memory:") as state:
        yield state


@pytest_asyncio.fixture
async def service(memory: State) -> AsyncIterator[Service]:
    async with serving(example_app(), memory, max_request_bytes=10_000, max_streams=1) as found:
        yield found


@pytest_asyncio.fixture
async def http(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with http_client(base_url=service.url, headers=MODERN, timeout=60) as client:
        yield client


def _rpc(method: str, params: Any, number: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _hello(text: str, message_id: str = "m1", **more: Any) -> dict[str, Any]:
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": message} | more


async def _code(http: httpx.AsyncClient, method: str, params: Any, **headers: str) -> Any:
    answer = await http.post("/", json=_rpc(method, params), headers=headers)
    return answer.json().get("error", {}).get("code")


async def test_the_card_tells_where_and_how_and_can_be_cached(http: httpx.AsyncClient) -> None:
    answer = await http.get("/.well-known/agent-card.json")
    card = answer.json()
    bindings = {one["protocolBinding"] for one in card["supportedInterfaces"]}
    assert bindings == {"JSONRPC", "HTTP+JSON"}
    assert card["capabilities"]["streaming"] is True
    assert [one["id"] for one in card["skills"]] == ["tester"]
    assert {"etag", "last-modified", "cache-control"} <= set(answer.headers)
    again = await http.get(
        "/.well-known/agent-card.json", headers={"If-None-Match": answer.headers["etag"]}
    )
    assert again.status_code == 304


async def test_metrics_count_calls_and_runs(http: httpx.AsyncClient) -> None:
    assert await _code(http, "SendMessage", _hello("say hi")) is None
    assert await _code(http, "GetTask", {"id": "nobody"}) == -32001
    text = (await http.get("/metrics")).text
    assert 'holdfast_calls_total{method="SendMessage",outcome="ok"} 1.0' in text
    assert 'holdfast_calls_total{method="GetTask",outcome="TaskNotFoundError"} 1.0' in text
    assert 'holdfast_task_runs_total{outcome="completed"} 1.0' in text
    assert 'holdfast_responses_total{status="200"}' in text


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_request_that_is_too_large_is_413(http: httpx.AsyncClient, chunked: bool) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 1000

    body: Any = chunks() if chunked else b"x" * 5_000_000
    headers = {"Content-Type": "application/json"}
    answer = await http.post("/", content=body, headers=headers)
    assert answer.status_code == 413


async def test_without_keys_only_this_machines_names_are_answered(
    http: httpx.AsyncClient,
) -> None:
    for host, code in (
        ("evil.example", 421),
        ("localhost", 200),
        ("127.0.0.1:80", 200),
        ("[::1]:80", 200),
    ):
        assert (await http.get("/health", headers={"Host": host})).status_code == code


async def test_a_body_that_is_not_json_by_its_own_account_is_refused(
    http: httpx.AsyncClient,
) -> None:
    plain = {"Content-Type": "text/plain"}
    body = json.dumps(_rpc("GetTask", {"id": "x"}))
    rpc = await http.post("/", content=body, headers=plain)
    assert rpc.json()["error"]["code"] == -32005
    rest = await http.post("/message:send", content=json.dumps(_hello("x")), headers=plain)
    assert rest.status_code == 415


async def test_rest_answers_in_the_clients_own_json(http: httpx.AsyncClient) -> None:
    plain = await http.post("/message:send", json=_hello("say hi"))
    assert plain.headers["content-type"] == "application/json"
    own = {"Content-Type": "application/a2a+json"}
    theirs = await http.post("/message:send", content=json.dumps(_hello("say hi")), headers=own)
    assert theirs.headers["content-type"].startswith("application/a2a+json")
    found = await http.get(f"/tasks/{plain.json()['task']['id']}")
    assert found.json()["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[" * 5000 + b"]" * 4999, -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "Nothing"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tasks/pause", "params": {"id": 7}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"status": "X"}}', -32602),
    ],
)
async def test_broken_requests_have_their_codes(
    http: httpx.AsyncClient, body: bytes, code: int
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = (await http.post("/", content=body, headers=headers)).json()
    assert answer["error"]["code"] == code


async def test_an_unknown_state_is_refused_and_a_known_one_filters(http: httpx.AsyncClient) -> None:
    assert (await http.get("/tasks", params={"status": "NO_STATE"})).status_code == 400
    known = await http.get("/tasks", params={"status": "TASK_STATE_WORKING"})
    assert known.json()["tasks"] == []


@pytest.mark.parametrize(
    "message",
    [
        {"parts": [{"text": "x"}], "messageId": "m" * 600, "role": "ROLE_USER"},
        {"parts": [{}], "messageId": "m", "role": "ROLE_USER"},
        {"parts": [], "messageId": "m", "role": "ROLE_USER"},
        {"parts": [{"text": "x"}], "messageId": "m", "role": "ROLE_USER", "contextId": "a\u0000b"},
    ],
)
async def test_a_message_that_cannot_be_kept_is_refused(
    http: httpx.AsyncClient, memory: State, message: dict[str, Any]
) -> None:
    assert await _code(http, "SendMessage", {"message": message}) == -32602
    assert (await memory.tasks.list(count=True)).total == 0


async def test_the_version_decides_about_the_words(http: httpx.AsyncClient) -> None:
    assert await _code(http, "GetTask", {"id": "x"}, **{"A2A-Version": "2.0"}) == -32009
    assert await _code(http, "contexts/list", {}, **{"A2A-Version": "2.0"}) == -32009
    old = {"A2A-Version": ""}
    parts = [{"kind": "text", "text": "say hi"}]
    message = {"kind": "message", "messageId": "m", "role": "user", "parts": parts}
    answer = await http.post("/", json=_rpc("message/send", {"message": message}), headers=old)
    assert answer.json()["result"]["status"]["state"] == "completed"
    listed = (await http.post("/", json=_rpc("tasks/list", {}), headers=old)).json()["result"]
    assert listed["tasks"][0]["status"]["state"] == "completed"
    assert listed["tasks"][0]["kind"] == "task"
    modern = (await http.post("/", json=_rpc("tasks/list", {}))).json()["result"]
    assert modern["tasks"][0]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_a_call_of_1_0_without_a_version_says_which_header_it_lacks(
    http: httpx.AsyncClient,
) -> None:
    old = {"A2A-Version": ""}
    for path in ("/message:send", "/message:stream"):
        answer = await http.post(path, json=_hello("say hi"), headers=old)
        assert answer.status_code == 400
        reply = answer.json()["error"]
        assert "`A2A-Version: 1.0`" in reply["message"]
        assert "/v1/" in reply["message"]
        assert reply["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"
    answer = await http.post("/", json=_rpc("SendMessage", _hello("say hi")), headers=old)
    reply = answer.json()["error"]
    assert (reply["code"], "`A2A-Version: 1.0`" in reply["message"]) == (-32009, True)
    assert await _code(http, "NoSuchMethod", {}, **old) == -32601


async def test_contexts_feedback_pause_and_resume(memory: State) -> None:
    async with (
        serving(example_app(), memory, workers=0) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
    ):

        async def call(method: str, **params: Any) -> Any:
            return (await http.post("/", json=_rpc(method, params))).json()["result"]

        now = {"configuration": {"returnImmediately": True}}
        task = (await call("SendMessage", **_hello("say hi"), **now))["task"]
        paused = await call("tasks/pause", id=task["id"])
        assert paused["status"]["state"] == "TASK_STATE_SUBMITTED"
        assert paused["metadata"] == {"paused": True}
        waiting = await call("ListTasks", status="TASK_STATE_SUBMITTED")
        assert waiting["totalSize"] == 1
        resumed = await call("tasks/resume", id=task["id"])
        assert "metadata" not in resumed
        given = await call("tasks/feedback", id=task["id"], text="good", rating=5)
        [kept] = await memory.tasks.list_feedback(task["id"])
        assert (kept.id, kept.text, kept.rating) == (given["feedbackId"], "good", 5)
        page = await call("contexts/list", pageSize=1)
        assert [one["contextId"] for one in page["contexts"]] == [task["contextId"]]
        got = await call("contexts/get", contextId=task["contextId"])
        assert (got["contextId"], got["tasks"]) == (task["contextId"], 1)
        assert got["messages"][0]["parts"] == [{"text": "say hi"}]
        none = await call("contexts/get", contextId=task["contextId"], historyLength=0)
        assert none["messages"] == []
        cleared = await call("contexts/clear", contextId=task["contextId"])
        assert cleared["removedTasks"] == 1
        assert (await memory.tasks.list(count=True)).total == 0


async def test_a_caller_without_a_key_cannot_clear_what_an_owner_stored(memory: State) -> None:
    ana = memory.for_owner("ana")
    await ana.history.append("planner", ChatMessage.user("gold"), session_id="c1")
    await ana.short_term.set_state("c1", {"gold": 1})
    stored = owned_id("ana", "c1")
    async with (
        serving(example_app(), memory, workers=0) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
    ):
        answer = await http.post("/", json=_rpc("contexts/clear", {"contextId": stored}))
        assert "reserved" in answer.json()["error"]["message"]
    assert len(await ana.history.get_messages("planner", session_id="c1")) == 1
    assert await ana.short_term.get_state("c1") == {"gold": 1}


async def test_the_same_message_id_is_one_send_only_when_that_is_set(memory: State) -> None:
    for dedupe, wanted in ((False, 2), (True, 1)):
        place = memory.for_tenant(f"dedupe-{dedupe}")
        async with (
            serving(example_app(), place, dedupe_message_ids=dedupe) as service,
            http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
        ):
            for _ in range(2):
                assert await _code(http, "SendMessage", _hello("say hi", "same")) is None
            assert (await place.tasks.list(count=True)).total == wanted
            other = await _code(http, "SendMessage", _hello("say ho", "same"))
            assert other == (-32602 if dedupe else None)


async def test_the_agent_is_named_in_the_metadata(memory: State) -> None:
    app = example_app()

    @app.handler(agent="second")
    async def second(task: holdfast.TaskContext) -> str:
        return f"second, with {task.metadata}"

    async with (
        serving(app, memory) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
    ):
        meant = {"metadata": {"holdfast.agent": "second", "page": 2}}
        answer = await http.post("/message:send", json=_hello("hi") | meant)
        assert answer.json()["task"]["status"]["message"]["parts"][0]["text"] == (
            "second, with {'page': 2}"
        )
        unknown = {"metadata": {"holdfast.agent": "third"}}
        wrong = await http.post("/message:send", json=_hello("hi") | unknown)
        assert wrong.status_code == 400


@pytest.mark.parametrize(
    ("error", "status", "retry"),
    [
        (UnavailableError("postgres", "at 10.0.0.7 as admin"), 503, "1"),
        (BackPressureError(retry_after_seconds=2.5, message="internals"), 503, "3"),
        (RuntimeError("secret of 10.0.0.7"), 500, None),
    ],
)
async def test_what_fails_inside_tells_nothing_but_when_to_try_again(
    http: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    status: int,
    retry: str | None,
) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(Ledger, "get", broken)
    for answer in (
        await http.get("/tasks/t1"),
        await http.post("/", json=_rpc("GetTask", {"id": "t1"})),
        await http.post("/", json=_rpc("SubscribeToTask", {"id": "t1"})),
        await http.get("/tasks/t1:subscribe"),
        await http.get("/blobs/b1?task=t1"),
    ):
        rpc = answer.request.method == "POST"
        assert answer.status_code == (200 if rpc and status == 500 else status)
        assert answer.headers.get("retry-after") == retry
        assert "10.0.0.7" not in answer.text
        assert "internals" not in answer.text


async def test_only_so_many_streams_are_open_at_a_time(
    http: httpx.AsyncClient, service: Service
) -> None:
    task = (await http.post("/message:send", json=_hello("ask me"))).json()["task"]
    body = _rpc("SubscribeToTask", {"id": task["id"]})
    async with http.stream("POST", "/", json=body) as first:
        await anext(first.aiter_lines())
        second = await http.post("/", json=body)
        assert second.status_code == 503
    async with asyncio.timeout(30):
        while service._handler.streams:
            await asyncio.sleep(0.01)
    async with http.stream("POST", "/", json=body) as third:
        assert third.status_code == 200


async def test_a_cancel_that_no_worker_confirms_in_time_stays_requested(memory: State) -> None:
    async with (
        serving(example_app(), memory, cancel_seconds=0.05, workers=0) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
    ):
        now = {"configuration": {"returnImmediately": True}}
        task = (await http.post("/message:send", json=_hello("say hi") | now)).json()["task"]
        # Whoever has it never says another word.
        assert len(await memory.tasks.claim("silent", lease_seconds=3600)) == 1
        answer = await http.post(f"/tasks/{task['id']}:cancel")
        assert answer.json()["status"]["state"] == "TASK_STATE_WORKING"
        kept = await memory.tasks.get(task["id"])
        assert kept is not None
        assert kept.cancel_requested


@pytest.mark.parametrize("cursor", ["x", "-1", "999", "1e3", "9" * 30])
async def test_a_cursor_that_no_stream_gave_is_refused(
    http: httpx.AsyncClient, cursor: str
) -> None:
    task = (await http.post("/message:send", json=_hello("ask me"))).json()["task"]
    answer = await http.get(f"/tasks/{task['id']}:subscribe", headers={"Last-Event-ID": cursor})
    assert answer.status_code == 400


async def test_every_error_of_ours_has_an_answer() -> None:
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    ours = [one for one in kinds if issubclass(one, HoldfastError)]
    assert len(ours) > 15
    for kind in ours:
        error = kind.__new__(kind, "secret")
        error.__dict__.update(
            {"kind": "task", "key": "k", "from_state": "a", "to_state": "b"}
            | ({"retry_after_seconds": 1.0} if kind is BackPressureError else {})
        )
        error.args = ("secret",)
        reply, _ = to_a2a(error)
        assert issubclass(kind, errors.InvalidInputError) or "secret" not in str(reply)
