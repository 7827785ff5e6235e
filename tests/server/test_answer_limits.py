"""An answer has at most so many bytes, however much a caller has stored."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import httpx
import pytest
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc

from holdfast import App, ChatMessage, State, TaskContext
from holdfast.content import DataBlock, DocumentBlock
from holdfast.testing.postgres_server import free_port
from tests.server.running import MODERN, http_client, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")
MOST = 10_000
WORD = "x" * 1_000


def _app() -> App:
    app = App("asker", remember=False)

    @app.handler
    async def ask(task: TaskContext) -> str:
        word, _, rest = task.message.text.partition(" ")
        if word == "file":
            await task.artifact("a.bin", b"f" * 300_000, media_type="application/x-test")
            await task.artifact("large", WORD * 5)
        if word == "write":
            for at in range(int(rest)):
                await task.artifact(f"a{at}", WORD)
        while word != "write":
            if (await task.ask("and?")).text == "end":
                break
        return "done"

    return app


@asynccontextmanager
async def _served(state: State, **how: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serving(_app(), state, max_answer_bytes=MOST, **how) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
    ):
        yield http


async def _call(http: httpx.AsyncClient, method: str, params: dict[str, Any]) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = (await http.post("/", json=body)).json()
    assert "error" not in answer, answer
    return answer["result"]


def _send(text: str, **fields: Any) -> dict[str, Any]:
    number = fields.pop("number", "m")
    message = {"messageId": number, "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": message | fields}


async def _long_talk(http: httpx.AsyncClient, first: str = WORD, answers: int = 20) -> Any:
    """A task that has asked, and was answered, many times."""
    task = (await _call(http, "SendMessage", _send(first, contextId="c1")))["task"]
    for at in range(answers):
        said = _send(f"{at} {WORD}", taskId=task["id"], number=f"m{at}")
        task = (await _call(http, "SendMessage", said))["task"]
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    return task


def _check_cut(task: dict[str, Any], last: str) -> None:
    texts = [one["parts"][0]["text"] for one in task["history"]]
    assert 3 <= len(texts) <= 20, texts
    assert texts[-2:] == [last, "and?"] or texts[-1] == last, texts
    assert len(json.dumps(task)) < 2 * MOST
    assert task["metadata"]["truncated"] is True


async def test_a_page_of_tasks_ends_early_and_the_next_one_goes_on(state: State) -> None:
    made = [(await state.tasks.submit("nobody", ChatMessage.user(WORD))).id for _ in range(25)]
    port = free_port()
    async with (
        _served(state, grpc_port=port, workers=0) as http,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        stub: Any = a2a_pb2_grpc.A2AServiceStub(channel)  # type: ignore[no-untyped-call]

        async def rest(token: str) -> Any:
            query: dict[str, str | int] = {"historyLength": 5, "pageSize": 100, "pageToken": token}
            return (await http.get("/tasks", params=query)).json()

        async def rpc(token: str, method: str) -> Any:
            return await _call(
                http, method, {"historyLength": 5, "pageSize": 100, "pageToken": token}
            )

        async def by_grpc(token: str) -> Any:
            request = a2a.ListTasksRequest(history_length=5, page_size=100, page_token=token)
            found = await stub.ListTasks(request, wait_for_ready=True)
            tasks = [{"id": one.id} for one in found.tasks]
            return {"tasks": tasks, "nextPageToken": found.next_page_token, "totalSize": 25}

        for ask in (
            rest,
            lambda token: rpc(token, "ListTasks"),
            lambda token: rpc(token, "tasks/list"),
            by_grpc,
        ):
            seen: list[str] = []
            token = ""
            while True:
                page = await ask(token)
                assert 1 <= len(page["tasks"]) <= 10
                assert page["totalSize"] == 25
                seen += [one["id"] for one in page["tasks"]]
                token = page.get("nextPageToken", "")
                if not token:
                    break
            assert seen == made[::-1]


async def test_of_a_long_task_the_newest_messages_come(state: State) -> None:
    async with _served(state) as http:
        task = await _long_talk(http)
        last = f"19 {WORD}"
        _check_cut(task, last)
        _check_cut(await _call(http, "GetTask", {"id": task["id"]}), last)
        _check_cut(await _call(http, "GetTask", {"id": task["id"], "historyLength": 30}), last)
        _check_cut((await http.get(f"/tasks/{task['id']}")).json(), last)
        few = await _call(http, "GetTask", {"id": task["id"], "historyLength": 2})
        assert len(few["history"]) == 2
        assert "metadata" not in few
        async with http.stream("GET", f"/tasks/{task['id']}:subscribe") as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data:"):
                    _check_cut(json.loads(line[5:])["task"], last)
                    break
        more = _send(f"20 {WORD}", taskId=task["id"], number="m20")
        async with http.stream("POST", "/message:stream", json=more) as stream:
            events = [
                json.loads(line[5:]) async for line in stream.aiter_lines() if line[:5] == "data:"
            ]
        _check_cut(events[0]["task"], f"20 {WORD}")
        states = [one["statusUpdate"]["status"]["state"] for one in events[1:]]
        assert states[-1] == "TASK_STATE_INPUT_REQUIRED"


async def test_of_a_long_context_the_newest_messages_come(state: State) -> None:
    async with _served(state) as http:
        await _long_talk(http)
        found = await _call(http, "contexts/get", {"contextId": "c1", "historyLength": 1000})
        assert 3 <= len(found["messages"]) <= 20
        assert found["messages"][-1]["parts"][0]["text"] == "and?"
        assert found["truncated"] is True
        few = await _call(http, "contexts/get", {"contextId": "c1", "historyLength": 2})
        assert len(few["messages"]) == 2
        assert "truncated" not in few


async def test_artifacts_that_are_too_large_for_an_answer_come_as_a_stream(state: State) -> None:
    async with _served(state) as http:
        sent = await _call(http, "SendMessage", _send("write 20"))
        task = sent["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        for shown in (task, await _call(http, "GetTask", {"id": task["id"]})):
            assert "artifacts" not in shown
            assert shown["metadata"]["truncated"] is True
        headers = {"Last-Event-ID": "0"}
        async with http.stream("GET", f"/tasks/{task['id']}:subscribe", headers=headers) as stream:
            events = [
                json.loads(line[5:]) async for line in stream.aiter_lines() if line[:5] == "data:"
            ]
        parts = [one["artifactUpdate"] for one in events if "artifactUpdate" in one]
        assert [one["artifact"]["artifactId"] for one in parts] == [f"a{at}" for at in range(20)]
        listed = await _call(http, "ListTasks", {"includeArtifacts": True})
        assert listed["tasks"][0]["metadata"]["truncated"] is True


async def test_a_file_of_a_task_that_is_too_large_is_still_found(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.server.files.PAGE_BYTES", 3_000)
    async with _served(state) as http:
        task = await _long_talk(http, first="file")
        file = await state.tasks.get_artifact(task["id"], "a.bin")
        assert file is not None
        [part] = file.parts
        assert isinstance(part, DocumentBlock)
        ref = part.blob_ref
        got = await http.get(f"/blobs/{ref}", params={"task": task["id"]})
        assert (got.status_code, len(got.content)) == (200, 300_000)
        assert (await http.get("/blobs/other", params={"task": task["id"]})).status_code == 404


async def test_small_files_come_inline_only_while_there_is_room(state: State) -> None:
    app = App("files", remember=False)

    @app.handler
    async def work(task: TaskContext) -> str:
        for at in range(5):
            ref = await state.blobs.store(b"f" * 4_000)
            await task.artifact(f"a{at}", DocumentBlock(blob_ref=ref, media_type="a/b"))
        return "done"

    async with (
        serving(app, state, max_answer_bytes=MOST) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
    ):
        task = (await _call(http, "SendMessage", _send("go")))["task"]
        parts = [one["parts"][0] for one in task["artifacts"]]
        assert sum("raw" in one for one in parts) == 2
        for one in parts:
            if "url" in one:
                assert len((await http.get(one["url"])).content) == 4_000


async def test_a_task_takes_no_more_answers_when_it_is_too_large(state: State) -> None:
    """A worker reads all messages of a task: without a limit one task takes all memory."""
    async with _served(state, max_task_bytes=15_000) as http:
        task = await _long_talk(http, answers=12)
        codes = []
        for at in range(5):
            more = _send(WORD, taskId=task["id"], number=f"more{at}")
            codes += [(await http.post("/message:send", json=more)).status_code]
        assert codes[0] == 200
        assert codes[-1] == 400
        said = _send(WORD, taskId=task["id"], number="last")
        answer = await http.post("/message:send", json=said)
        assert "the limit is 15000: send a new task" in answer.json()["error"]["message"]
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": said}
        assert (await http.post("/", json=rpc)).json()["error"]["code"] == -32602
        found = await _call(http, "GetTask", {"id": task["id"]})
        assert found["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert await state.tasks.message_bytes(task["id"]) < 20_000
        new = await _call(http, "SendMessage", _send("again", contextId="c1"))
        assert new["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"


async def test_an_answer_has_only_so_many_values_however_small_they_are(state: State) -> None:
    many = ChatMessage("user", [DataBlock([1] * 9_000)])
    async with serving(_app(), state, workers=0) as service:
        for _ in range(8):
            await state.tasks.submit("nobody", many, session_id="c1")
        async with http_client(base_url=service.url, headers=MODERN, timeout=60) as http:
            page = await _call(http, "ListTasks", {"historyLength": 5, "pageSize": 100})
            context = await _call(http, "contexts/get", {"contextId": "c1"})
    shown = [bool(task.get("history")) for task in page["tasks"]]
    assert shown == [True] * 5 + [False] * 3
    cut = [task.get("metadata", {}).get("truncated", False) for task in page["tasks"]]
    assert cut == [not one for one in shown]
    assert (len(context["messages"]), context["truncated"]) == (5, True)
