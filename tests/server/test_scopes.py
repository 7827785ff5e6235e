"""What each scope of a key may do, over the wire, with two actors of one tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import grpc
import httpx
import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc

from holdfast import PushConfig, State
from holdfast.server.service import Service, listening
from tests.server.running import example_app, http_client, said, sent, serving, talking
from tests.server.test_authorisation import ABOUT_A_TASK, EVERYTHING, Ids, Request

pytestmark = pytest.mark.asyncio(loop_scope="session")
READS = {
    *("GetTask", "0.3 tasks/get", "REST get", "0.3 REST get", "blob"),
    *("ListTasks", "ListTasks of a context", "tasks/list", "0.3 tasks/list", "contexts/list"),
    *("REST list", "contexts/get", "0.3 contexts/get"),
}
CONTEXTS = {"ListTasks of a context", "contexts/list", "contexts/get", "0.3 contexts/get"}
WATCHES = {"SubscribeToTask", "0.3 tasks/resubscribe", "REST subscribe"}
WRITES = EVERYTHING.keys() - READS - WATCHES - {"metrics"}


@dataclass(frozen=True)
class Scene:
    """A service with a task of ana's, and keys of every scope for her and for max."""

    service: Service
    keys: dict[tuple[str, str], str]
    mine: Ids
    state: State
    http: httpx.AsyncClient
    grpc_port: int

    async def ask(self, request: Request, who: tuple[str, str]) -> httpx.Response:
        """What a caller gets for a request."""
        method, path, body, version = request
        headers = self.headers(who) | ({"A2A-Version": version} if version else {})
        return await self.http.request(method, path, json=body, headers=headers)

    def headers(self, who: tuple[str, str]) -> dict[str, str]:
        """The key of a caller."""
        return {"Authorization": f"Bearer {self.keys[who]}"}


@pytest_asyncio.fixture
async def scene(state: State) -> AsyncIterator[Scene]:
    keys = {
        (owner, scope): (await state.keys.create(owner, scope=scope)).text
        for owner in ("ana", "max")
        for scope in ("owner", "reader", "operator")
    }
    with listening("127.0.0.1", 0) as sock:
        port: int = sock.getsockname()[1]
    async with (
        serving(example_app(), state, auth=True, grpc_port=port) as service,
        talking(service, key=keys["ana", "owner"], streaming=False) as ana,
        http_client(base_url=service.url, timeout=60) as http,
    ):
        [made] = await sent(ana, said("ask her", context_id="c-ana"))
        [filed] = await sent(ana, said("file 300000"))
        blob = filed.task.artifacts[0].parts[0].url.partition("/blobs/")[2].partition("?")[0]
        await state.tasks.upsert_push_config(
            made.task.id, PushConfig("p1", "https://example.org/hook"), owner="ana"
        )
        yield Scene(service, keys, Ids(made.task.id, "c-ana", blob), state, http, port)


def _refused(answer: httpx.Response) -> bool:
    return answer.status_code == 403 and "scope reader" in answer.text


async def test_a_reader_changes_nothing_on_any_path(scene: Scene) -> None:
    before = await scene.state.tasks.get(scene.mine.task, owner="ana")
    for name in sorted(WRITES):
        answer = await scene.ask(EVERYTHING[name](scene.mine), ("ana", "reader"))
        assert _refused(answer), (name, answer.text)
    assert await scene.state.tasks.get(scene.mine.task, owner="ana") == before
    assert (await scene.state.tasks.list(owner="ana", count=True)).total == 2
    [config] = await scene.state.tasks.list_push_configs(scene.mine.task, owner="ana")
    assert config.id == "p1"


async def test_a_reader_reads_what_its_owner_reads_and_nothing_of_others(scene: Scene) -> None:
    for name in sorted(READS - {"blob"}):
        request = EVERYTHING[name](scene.mine)
        mine = await scene.ask(request, ("ana", "reader"))
        assert mine.text == (await scene.ask(request, ("ana", "owner"))).text, name
        assert scene.mine.task in mine.text or "c-ana" in mine.text, name
        theirs = await scene.ask(request, ("max", "reader"))
        assert theirs.text == (await scene.ask(request, ("max", "owner"))).text, name
        assert scene.mine.task not in theirs.text, name


async def _watched(scene: Scene, name: str, who: tuple[str, str]) -> tuple[int, str]:
    method, path, body, version = ABOUT_A_TASK[name](scene.mine)
    headers = scene.headers(who) | ({"A2A-Version": version} if version else {})
    async with scene.http.stream(method, path, json=body, headers=headers) as stream:
        async for line in stream.aiter_lines():
            if line.startswith(("data:", "{")):
                return stream.status_code, line
        return stream.status_code, ""


@pytest.mark.parametrize("name", sorted(WATCHES))
async def test_readers_and_operators_watch_tasks(scene: Scene, name: str) -> None:
    for who in (("ana", "reader"), ("ana", "operator"), ("max", "operator")):
        code, line = await _watched(scene, name, who)
        assert (code, scene.mine.task in line) == (200, True), who
    for who in (("max", "reader"), ("max", "owner")):
        _, line = await _watched(scene, name, who)
        assert scene.mine.task not in line
        assert "not found" in line


async def test_an_operator_reads_the_tasks_of_every_owner_and_changes_only_its_own(
    scene: Scene,
) -> None:
    before = await scene.state.tasks.get(scene.mine.task, owner="ana")
    who = ("max", "operator")
    for name in sorted(READS - CONTEXTS - {"blob"}):
        request = EVERYTHING[name](scene.mine)
        answer = await scene.ask(request, who)
        assert scene.mine.task in answer.text, name
    contexts = await scene.ask(EVERYTHING["contexts/list"](scene.mine), who)
    assert {"ana"} == {one["owner"] for one in contexts.json()["result"]["contexts"]}
    for name in sorted(WRITES - {"contexts/clear"}):
        answer = await scene.ask(ABOUT_A_TASK[name](scene.mine), who)
        reply = answer.text.lower()
        assert "not found" in reply or "notfound" in reply, (name, answer.text)
    cleared = await scene.ask(EVERYTHING["contexts/clear"](scene.mine), who)
    assert cleared.json()["result"]["removedTasks"] == 0
    assert await scene.state.tasks.get(scene.mine.task, owner="ana") == before


async def test_files_follow_their_tasks(scene: Scene) -> None:
    tasks = (await scene.state.tasks.list(owner="ana", states=["completed"])).tasks
    ids = Ids(tasks[0].id, "c-ana", scene.mine.blob)
    codes = {who: (await scene.ask(EVERYTHING["blob"](ids), who)).status_code for who in scene.keys}
    assert {who for who, code in codes.items() if code == 200} == {
        *(("ana", scope) for scope in ("owner", "reader", "operator")),
        ("max", "operator"),
    }
    assert {codes["max", "owner"], codes["max", "reader"]} == {404}


async def test_only_operators_see_the_figures_of_the_service(scene: Scene) -> None:
    for who in scene.keys:
        answer = await scene.http.get("/metrics", headers=scene.headers(who))
        operates = who[1] == "operator"
        assert answer.status_code == (200 if operates else 403), who
        assert ("holdfast_calls" in answer.text) is operates
        health = await scene.http.get("/health", headers=scene.headers(who))
        assert ("durability" in health.text) is operates


async def test_grpc_knows_the_scopes(scene: Scene) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{scene.grpc_port}") as channel:
        make: Callable[[Any], Any] = a2a_pb2_grpc.A2AServiceStub
        stub = make(channel)

        def key(*who: str) -> list[tuple[str, str]]:
            return [("authorization", f"Bearer {scene.keys[who[0], who[1]]}")]

        get = a2a.GetTaskRequest(id=scene.mine.task)
        for who in (("ana", "reader"), ("max", "operator")):
            found = await stub.GetTask(get, metadata=key(*who), wait_for_ready=True)
            assert found.id == scene.mine.task
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetTask(get, metadata=key("max", "reader"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        with pytest.raises(grpc.aio.AioRpcError, match="scope reader"):
            await stub.SendMessage(said("say hi"), metadata=key("ana", "reader"))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.CancelTask(
                a2a.CancelTaskRequest(id=scene.mine.task), metadata=key("max", "operator")
            )
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_an_expired_key_opens_nothing_and_ends_its_streams(state: State) -> None:
    made = await state.keys.create("ana", ttl_seconds=2)
    kept = (await state.keys.create("ana")).text
    async with (
        serving(example_app(), state, auth=True, key_check_seconds=0.05) as service,
        talking(service, key=kept, streaming=False) as ana,
        http_client(base_url=service.url, timeout=60) as http,
    ):
        [asked] = await sent(ana, said("ask me"))
        headers = {"Authorization": f"Bearer {made.text}", "A2A-Version": "1.0"}
        path = f"/tasks/{asked.task.id}:subscribe"
        async with http.stream("GET", path, headers=headers) as stream, asyncio.timeout(60):
            # On a busy machine the key may have ended before: then the request is refused.
            reply = "\n".join([line async for line in stream.aiter_lines()])
        assert "expired" in reply
        answer = await http.get("/tasks", headers=headers)
        assert (answer.status_code, "expired" in answer.text) == (401, True)
