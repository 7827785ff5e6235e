"""Every method for its owner, another owner, another tenant and nobody: nothing leaks.

What is another's must be answered as what never was, to the byte.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as a2a

from holdfast import PushConfig, State
from holdfast.server.service import Service
from holdfast.values.ids import new_ref
from tests.server.running import example_app, http_client, said, sent, serving, talking

pytestmark = pytest.mark.asyncio(loop_scope="session")
TREASURE = "it is under the oak"


@dataclass(frozen=True)
class Ids:
    """What a request is about."""

    task: str
    context: str
    blob: str = "none"
    config: str = "p1"


@dataclass(frozen=True)
class Scene:
    """A service, the keys of its callers, and what belongs to the first."""

    service: Service
    keys: dict[str, str]
    mine: Ids
    state: State
    http: httpx.AsyncClient


Request = tuple[str, str, Any, str]
"""Method, path, JSON body and A2A version."""


def _rpc(method: str, params: dict[str, Any], version: str = "1.0") -> Request:
    return "POST", "/", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, version


def _said(**fields: Any) -> dict[str, Any]:
    message = {"messageId": "m-fixed", "role": "ROLE_USER", "parts": [{"text": "x"}]}
    return {"message": message | fields}


def _old(**fields: Any) -> dict[str, Any]:
    message = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}]}
    return {"message": message | {"kind": "message"} | fields}


HOOK = {"url": "https://example.org/hook"}

ABOUT_A_TASK: dict[str, Callable[[Ids], Request]] = {
    "GetTask": lambda i: _rpc("GetTask", {"id": i.task}),
    "CancelTask": lambda i: _rpc("CancelTask", {"id": i.task}),
    "SubscribeToTask": lambda i: _rpc("SubscribeToTask", {"id": i.task}),
    "SendMessage, continued": lambda i: _rpc("SendMessage", _said(taskId=i.task)),
    "SendMessage, referring": lambda i: _rpc("SendMessage", _said(referenceTaskIds=[i.task])),
    "SendStreamingMessage, continued": lambda i: _rpc("SendStreamingMessage", _said(taskId=i.task)),
    "CreateTaskPushNotificationConfig": lambda i: _rpc(
        "CreateTaskPushNotificationConfig", HOOK | {"taskId": i.task, "id": "p2"}
    ),
    "GetTaskPushNotificationConfig": lambda i: _rpc(
        "GetTaskPushNotificationConfig", {"taskId": i.task, "id": i.config}
    ),
    "ListTaskPushNotificationConfigs": lambda i: _rpc(
        "ListTaskPushNotificationConfigs", {"taskId": i.task}
    ),
    "DeleteTaskPushNotificationConfig": lambda i: _rpc(
        "DeleteTaskPushNotificationConfig", {"taskId": i.task, "id": i.config}
    ),
    "tasks/feedback": lambda i: _rpc("tasks/feedback", {"id": i.task, "text": "good"}),
    "tasks/pause": lambda i: _rpc("tasks/pause", {"id": i.task}),
    "tasks/resume": lambda i: _rpc("tasks/resume", {"id": i.task}),
    "0.3 tasks/get": lambda i: _rpc("tasks/get", {"id": i.task}, ""),
    "0.3 tasks/cancel": lambda i: _rpc("tasks/cancel", {"id": i.task}, ""),
    "0.3 tasks/resubscribe": lambda i: _rpc("tasks/resubscribe", {"id": i.task}, ""),
    "0.3 message/send": lambda i: _rpc("message/send", _old(taskId=i.task), ""),
    "0.3 message/stream": lambda i: _rpc("message/stream", _old(taskId=i.task), ""),
    "0.3 tasks/pushNotificationConfig/get": lambda i: _rpc(
        "tasks/pushNotificationConfig/get",
        {"id": i.task, "pushNotificationConfigId": i.config},
        "",
    ),
    "0.3 tasks/pushNotificationConfig/set": lambda i: _rpc(
        "tasks/pushNotificationConfig/set",
        {"taskId": i.task, "pushNotificationConfig": HOOK},
        "",
    ),
    "0.3 tasks/pushNotificationConfig/list": lambda i: _rpc(
        "tasks/pushNotificationConfig/list", {"id": i.task}, ""
    ),
    "0.3 tasks/pushNotificationConfig/delete": lambda i: _rpc(
        "tasks/pushNotificationConfig/delete",
        {"id": i.task, "pushNotificationConfigId": i.config},
        "",
    ),
    "REST get": lambda i: ("GET", f"/tasks/{i.task}", None, "1.0"),
    "REST cancel": lambda i: ("POST", f"/tasks/{i.task}:cancel", {}, "1.0"),
    "REST subscribe": lambda i: ("GET", f"/tasks/{i.task}:subscribe", None, "1.0"),
    "REST send": lambda i: ("POST", "/message:send", _said(taskId=i.task), "1.0"),
    "REST stream": lambda i: ("POST", "/message:stream", _said(taskId=i.task), "1.0"),
    "REST create config": lambda i: (
        "POST",
        f"/tasks/{i.task}/pushNotificationConfigs",
        HOOK | {"id": "p2"},
        "1.0",
    ),
    "REST get config": lambda i: (
        "GET",
        f"/tasks/{i.task}/pushNotificationConfigs/{i.config}",
        None,
        "1.0",
    ),
    "REST list configs": lambda i: (
        "GET",
        f"/tasks/{i.task}/pushNotificationConfigs",
        None,
        "1.0",
    ),
    "REST delete config": lambda i: (
        "DELETE",
        f"/tasks/{i.task}/pushNotificationConfigs/{i.config}",
        None,
        "1.0",
    ),
    "0.3 REST get": lambda i: ("GET", f"/v1/tasks/{i.task}", None, ""),
    "0.3 REST cancel": lambda i: ("POST", f"/v1/tasks/{i.task}:cancel", {}, ""),
    "blob": lambda i: ("GET", f"/blobs/{i.blob}?task={i.task}", None, "1.0"),
}

ABOUT_ALL: dict[str, Callable[[Ids], Request]] = {
    "ListTasks": lambda _: _rpc("ListTasks", {"includeArtifacts": True, "historyLength": 9}),
    "ListTasks of a context": lambda i: _rpc("ListTasks", {"contextId": i.context}),
    "tasks/list": lambda _: _rpc("tasks/list", {}),
    "0.3 tasks/list": lambda _: _rpc("tasks/list", {}, ""),
    "contexts/list": lambda _: _rpc("contexts/list", {}),
    "contexts/get": lambda i: _rpc("contexts/get", {"contextId": i.context}),
    "0.3 contexts/get": lambda i: _rpc("contexts/get", {"contextId": i.context}, ""),
    "contexts/clear": lambda i: _rpc("contexts/clear", {"contextId": i.context}),
    "REST list": lambda _: ("GET", "/tasks?includeArtifacts=true", None, "1.0"),
    "metrics": lambda _: ("GET", "/metrics", None, "1.0"),
}
EVERYTHING = ABOUT_A_TASK | ABOUT_ALL


@pytest_asyncio.fixture
async def scene(state: State) -> AsyncIterator[Scene]:
    """A task of ana's with all that a task can have, and the keys of everybody."""
    other = state.for_tenant(new_ref())
    keys = {
        "owner": (await state.keys.create("ana")).text,
        "other owner": (await state.keys.create("max")).text,
        "other tenant": (await other.keys.create("ana")).text,
        "other reader": (await state.keys.create("max", scope="reader")).text,
        "other operator": (await other.keys.create("root", scope="operator")).text,
    }
    async with (
        serving(example_app(), state, auth=True) as service,
        talking(service, key=keys["owner"], streaming=False) as ana,
        http_client(base_url=service.url, timeout=60) as http,
    ):
        [made] = await sent(ana, said(f"ask {TREASURE}", context_id="c-ana"))
        task = made.task
        assert task.status.state == a2a.TASK_STATE_INPUT_REQUIRED
        [filed] = await sent(ana, said("file 300000"))
        blob = filed.task.artifacts[0].parts[0].url.partition("/blobs/")[2].partition("?")[0]
        await state.tasks.upsert_push_config(
            task.id, PushConfig("p1", "https://example.org/hook", token=TREASURE), owner="ana"
        )
        yield Scene(service, keys, Ids(task.id, "c-ana", blob), state, http)


async def _ask(scene: Scene, request: Request, key: str) -> httpx.Response:
    method, path, body, version = request
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if version:
        headers["A2A-Version"] = version
    return await scene.http.request(method, path, json=body, headers=headers)


async def test_what_is_anothers_is_answered_as_what_never_was(scene: Scene) -> None:
    mine, never = scene.mine, Ids(new_ref(), "c-none", new_ref())
    before = await scene.state.tasks.get(mine.task, owner="ana")
    for who in (one for one in scene.keys if one != "owner"):
        for name, request in EVERYTHING.items():
            if name == "metrics":
                continue
            seen = await _ask(scene, request(mine), scene.keys[who])
            wanted = await _ask(scene, request(never), scene.keys[who])
            what = f"{name} by {who}"
            text = seen.text.replace(mine.context, never.context)
            assert (seen.status_code, text) == (wanted.status_code, wanted.text), what
            assert TREASURE not in seen.text, what
            assert mine.task not in seen.text, what
            quiet = {"date", "content-length"}
            reply = [
                {k: v for k, v in one.headers.items() if k not in quiet} for one in (seen, wanted)
            ]
            assert reply[0] == reply[1], what
    assert await scene.state.tasks.get(mine.task, owner="ana") == before
    assert (await scene.state.tasks.list_push_configs(mine.task, owner="ana"))[0].id == "p1"


async def test_without_auth_a_request_of_no_owner_finds_no_owners_tasks(scene: Scene) -> None:
    mine, never = scene.mine, Ids(new_ref(), "c-none", new_ref())
    async with (
        serving(example_app(), scene.state, auth=False) as service,
        http_client(base_url=service.url, timeout=60) as http,
    ):
        anonymous = replace(scene, service=service, http=http)
        for name, request in ABOUT_A_TASK.items():
            seen = await _ask(anonymous, request(mine), "")
            wanted = await _ask(anonymous, request(never), "")
            assert (seen.status_code, seen.text) == (wanted.status_code, wanted.text), name
        listed = await _ask(anonymous, _rpc("ListTasks", {}), "")
        assert listed.json()["result"]["tasks"] == []
        own = (await _ask(anonymous, _rpc("SendMessage", _said()), "")).json()["result"]["task"]
        listed = await _ask(anonymous, _rpc("ListTasks", {}), "")
        assert [one["id"] for one in listed.json()["result"]["tasks"]] == [own["id"]]
    found = await scene.state.tasks.get(mine.task)
    assert found is not None
    assert found.owner == "ana"


async def test_without_a_key_nothing_is_answered(scene: Scene) -> None:
    revoked, expired = [await scene.state.keys.create("ana") for _ in range(2)]
    await scene.state.keys.revoke(revoked.key.id)
    await scene.state.keys.rotate(expired.key.id, grace_seconds=0)
    lacking: set[str] = set()
    wrong: set[str] = set()
    for name, request in EVERYTHING.items():
        for key in ("", revoked.text, expired.text, "hf_mfrw2zi_wrong"):
            answer = await _ask(scene, request(scene.mine), key)
            assert answer.status_code == 401, name
            assert answer.headers["www-authenticate"] == "Bearer"
            (wrong if key else lacking).add(answer.json()["error"]["message"])
    assert lacking == {"send an API key: Authorization: Bearer …"}
    assert wrong == {
        "this API key is unknown, revoked or expired: `holdfast keys create` makes one"
    }


async def test_every_method_is_open_to_the_owner(scene: Scene) -> None:
    # Those that end or change the task come last.
    last = ["CancelTask", "contexts/clear"]
    # Figures are for operators.
    skipped = {
        "metrics",
        "0.3 tasks/cancel",
        "REST cancel",
        "0.3 REST cancel",
        "0.3 message/stream",
    }
    skipped |= {name for name in ABOUT_A_TASK if "ubscribe" in name}  # they stay open
    skipped |= {name for name in ABOUT_A_TASK if "send" in name.lower() or "stream" in name}
    names = [name for name in EVERYTHING if name not in {*last, *skipped}]
    filed = (await scene.state.tasks.list(owner="ana", states=["completed"])).tasks[0]
    for name in [*names, *last]:
        about = scene.mine
        if name == "blob":
            about = Ids(filed.id, "", scene.mine.blob)
        hook = PushConfig("p1", "https://example.org")
        await scene.state.tasks.upsert_push_config(about.task, hook, owner="ana")
        answer = await _ask(scene, EVERYTHING[name](about), scene.keys["owner"])
        assert answer.status_code == 200, (name, answer.text)
        if answer.headers["content-type"].startswith("application/") and name != "blob":
            assert "error" not in answer.json(), (name, answer.text)
    assert await scene.state.tasks.get(scene.mine.task, owner="ana") is None


async def test_the_owner_can_continue_refer_and_subscribe(scene: Scene) -> None:
    async with talking(scene.service, key=scene.keys["owner"]) as ana:
        stream = ana.subscribe(a2a.SubscribeToTaskRequest(id=scene.mine.task))
        assert (await anext(stream)).task.id == scene.mine.task
        await sent(ana, said("the red one", task_id=scene.mine.task))
        rest = [event async for event in stream]
        assert rest[-1].status_update.status.state == a2a.TASK_STATE_COMPLETED
        [*referring] = await sent(ana, said("say hi", reference_task_ids=[scene.mine.task]))
        history = referring[0].task.history
        assert list(history[0].reference_task_ids) == [scene.mine.task]


async def test_the_tenant_is_the_keys_and_no_other(scene: Scene) -> None:
    request = _rpc("GetTask", {"id": scene.mine.task, "tenant": "another"})
    answer = (await _ask(scene, request, scene.keys["owner"])).json()
    assert answer["error"]["code"] == -32602
    rest = ("GET", f"/another/tasks/{scene.mine.task}", None, "1.0")
    assert (await _ask(scene, rest, scene.keys["owner"])).status_code == 400
    own = ("GET", f"/{scene.state.tenant}/tasks/{scene.mine.task}", None, "1.0")
    assert (await _ask(scene, own, scene.keys["owner"])).status_code == 200
