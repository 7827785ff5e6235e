"""One key cannot take the service from the others, and a revoked one keeps nothing open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import grpc
import httpx
import pytest
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc

from holdfast import State
from holdfast.server.limits import KeyLimits, TooManyRequestsError
from holdfast.server.options import ServiceOptions
from holdfast.server.service import Service, listening
from holdfast.values.owners import ANY_OWNER
from tests.server.running import MODERN, example_app, http_client, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def _as(service: Service, key: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = MODERN | {"Authorization": f"Bearer {key}"}
    async with http_client(base_url=service.url, headers=headers, timeout=60) as http:
        yield http


def _hello(text: str) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}}


def _rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def test_a_key_has_only_so_many_requests_open(state: State) -> None:
    ana, max_ = [(await state.keys.create(owner)).text for owner in ("ana", "max")]
    gate = asyncio.Event()
    async with (
        serving(example_app(go=gate), state, auth=True, key_requests=2) as service,
        _as(service, ana) as mine,
        _as(service, max_) as others,
    ):
        waiting = [
            asyncio.create_task(mine.post("/message:send", json=_hello("wait go")))
            for _ in range(2)
        ]
        async with asyncio.timeout(60):
            # Not what the worker runs: it may have found a task that another test left behind.
            while len((await state.tasks.list(states=["working"], owner=ANY_OWNER)).tasks) < 2:
                await asyncio.sleep(0.01)
        rest = await mine.get("/tasks")
        assert (rest.status_code, rest.headers["retry-after"]) == (429, "1")
        assert rest.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
        rpc = await mine.post("/", json=_rpc("ListTasks", {}))
        assert (rpc.status_code, rpc.headers["retry-after"]) == (429, "1")
        assert rpc.json()["error"]["code"] == -32603
        assert (await others.get("/tasks")).status_code == 200
        gate.set()
        assert {(await one).status_code for one in waiting} == {200}
        assert (await mine.get("/tasks")).status_code == 200


async def test_a_key_has_only_so_many_streams_and_they_leave_room_for_requests(
    state: State,
) -> None:
    ana = (await state.keys.create("ana")).text
    async with (
        serving(example_app(), state, auth=True, key_streams=2, key_requests=2) as service,
        _as(service, ana) as http,
        AsyncExitStack() as open_streams,
    ):
        task = (await http.post("/message:send", json=_hello("ask me"))).json()["task"]["id"]
        held: list[Any] = []
        for _ in range(2):
            stream = await open_streams.enter_async_context(
                http.stream("GET", f"/tasks/{task}:subscribe")
            )
            assert stream.status_code == 200
            # Kept: what iterates over a stream closes it when it is dropped.
            held.append(stream.aiter_lines())
            await anext(held[-1])
        rest = await http.get(f"/tasks/{task}:subscribe")
        assert (rest.status_code, rest.headers["retry-after"]) == (429, "5")
        rpc = await http.post("/", json=_rpc("SubscribeToTask", {"id": task}))
        assert (rpc.status_code, rpc.headers["retry-after"]) == (429, "5")
        old = await http.get(f"/v1/tasks/{task}:subscribe", headers={"A2A-Version": ""})
        assert old.status_code == 429
        assert (await http.get(f"/tasks/{task}")).status_code == 200


async def test_a_key_has_its_rate() -> None:
    now = 0.0
    limits = KeyLimits(ServiceOptions(key_rate=2.0), clock=lambda: now)

    def ask(key: str = "k1") -> float:
        try:
            with limits.request(key):
                return 0.0
        except TooManyRequestsError as error:
            return error.retry_after_seconds

    assert [ask(), ask(), ask()] == [0.0, 0.0, 0.5]
    assert ask("k2") == 0.0
    now = 0.5
    assert [ask(), ask()] == [0.0, 0.5]
    now = 60.0
    assert [ask(), ask(), ask()] == [0.0, 0.0, 0.5]


async def test_a_rate_is_answered_with_429(state: State) -> None:
    ana = (await state.keys.create("ana")).text
    async with (
        serving(example_app(), state, auth=True, key_rate=0.001) as service,
        _as(service, ana) as http,
    ):
        assert (await http.get("/tasks")).status_code == 200
        answer = await http.get("/tasks")
        assert answer.status_code == 429
        assert 900 <= int(answer.headers["retry-after"]) <= 1000
        assert (await http_get_health(service)) == 200


async def http_get_health(service: Service) -> int:
    async with http_client(base_url=service.url) as http:
        return (await http.get("/health")).status_code


@pytest.mark.parametrize("binding", ["rest", "rpc", "old rest", "old rpc"])
async def test_a_revoked_key_ends_its_open_streams(state: State, binding: str) -> None:
    ana, kept = await state.keys.create("ana"), await state.keys.create("ana")
    async with (
        serving(example_app(), state, auth=True, key_check_seconds=0.05) as service,
        _as(service, ana.text) as http,
        _as(service, kept.text) as other,
    ):
        task = (await http.post("/message:send", json=_hello("ask me"))).json()["task"]["id"]

        def subscribed(client: httpx.AsyncClient) -> Any:
            old = {"A2A-Version": ""} if binding.startswith("old") else {}
            if binding.endswith("rest"):
                path = f"{'/v1' if old else ''}/tasks/{task}:subscribe"
                return client.stream("GET", path, headers=old)
            method = "tasks/resubscribe" if old else "SubscribeToTask"
            return client.stream("POST", "/", json=_rpc(method, {"id": task}), headers=old)

        async with subscribed(http) as stream, subscribed(other) as kept_open:
            lines, kept_lines = stream.aiter_lines(), kept_open.aiter_lines()
            await anext(lines)
            await anext(kept_lines)
            await state.keys.revoke(ana.key.id)
            async with asyncio.timeout(60):
                rest = "\n".join([line async for line in lines])
            assert "revoked" in rest
            answer = {"taskId": task, "messageId": "m2", "role": "ROLE_USER"}
            message = answer | {"parts": [{"text": "this one"}]}
            await other.post("/message:send", json={"message": message})
            async with asyncio.timeout(60):
                assert "you said this one" in "\n".join([line async for line in kept_lines])


async def test_grpc_has_the_same_limits(state: State) -> None:
    ana = await state.keys.create("ana")
    with listening("127.0.0.1", 0) as sock:
        port: int = sock.getsockname()[1]
    async with (
        serving(
            example_app(),
            state,
            auth=True,
            grpc_port=port,
            key_requests=1,
            key_streams=1,
            key_check_seconds=0.05,
        ),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        make: Callable[[Any], Any] = a2a_pb2_grpc.A2AServiceStub
        stub, key = make(channel), [("authorization", f"Bearer {ana.text}")]
        asking = a2a.SendMessageRequest(
            message=a2a.Message(message_id="m", role=a2a.ROLE_USER, parts=[a2a.Part(text="ask")])
        )
        sent = [
            one
            async for one in stub.SendStreamingMessage(asking, metadata=key, wait_for_ready=True)
        ]
        task = a2a.SubscribeToTaskRequest(id=sent[0].task.id)
        stream = aiter(stub.SubscribeToTask(task, metadata=key))
        await anext(stream)
        with pytest.raises(grpc.aio.AioRpcError, match="1 streams open"):
            await anext(aiter(stub.SubscribeToTask(task, metadata=key)))
        await state.keys.revoke(ana.key.id)
        async with asyncio.timeout(60):
            with pytest.raises(grpc.aio.AioRpcError, match="revoked"):
                await anext(stream)
