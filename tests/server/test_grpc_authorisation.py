"""Every method over gRPC for its owner and for everybody else: nothing leaks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import grpc
import pytest
import pytest_asyncio
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc

from holdfast import PushConfig, State
from holdfast.testing.postgres_server import free_port
from holdfast.values.ids import new_ref
from tests.server.running import example_app, said, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")
TREASURE = "it is under the oak"
HOOK = "https://example.org/hook"

ABOUT_A_TASK: dict[str, Callable[[str], Any]] = {
    "GetTask": lambda task: a2a.GetTaskRequest(id=task),
    "CancelTask": lambda task: a2a.CancelTaskRequest(id=task),
    "SubscribeToTask": lambda task: a2a.SubscribeToTaskRequest(id=task),
    "SendMessage": lambda task: said("more", task_id=task),
    "SendStreamingMessage": lambda task: said("more", task_id=task),
    "CreateTaskPushNotificationConfig": lambda task: a2a.TaskPushNotificationConfig(
        task_id=task, id="p2", url=HOOK
    ),
    "GetTaskPushNotificationConfig": lambda task: a2a.GetTaskPushNotificationConfigRequest(
        task_id=task, id="p1"
    ),
    "ListTaskPushNotificationConfigs": lambda task: a2a.ListTaskPushNotificationConfigsRequest(
        task_id=task
    ),
    "DeleteTaskPushNotificationConfig": lambda task: a2a.DeleteTaskPushNotificationConfigRequest(
        task_id=task, id="p1"
    ),
}
STREAMS = {"SubscribeToTask", "SendStreamingMessage"}
ABOUT_ALL = {"ListTasks", "GetExtendedAgentCard"}


class Scene(NamedTuple):
    """A client of the service, the keys of its callers, and a task of the first."""

    stub: Any
    keys: dict[str, str]
    task: str
    state: State


@pytest_asyncio.fixture
async def scene(state: State) -> AsyncIterator[Scene]:
    other = state.for_tenant(new_ref())
    revoked, expired = [await state.keys.create("ana") for _ in range(2)]
    await state.keys.revoke(revoked.key.id)
    await state.keys.rotate(expired.key.id, grace_seconds=0)
    keys = {
        "owner": (await state.keys.create("ana")).text,
        "other owner": (await state.keys.create("max")).text,
        "other reader": (await state.keys.create("max", scope="reader")).text,
        "other tenant": (await other.keys.create("ana")).text,
        "other operator": (await other.keys.create("root", scope="operator")).text,
        "revoked": revoked.text,
        "expired": expired.text,
        "wrong": "hf_mfrw2zi_wrong",
        "nobody": "",
    }
    port = free_port()
    async with (
        serving(example_app(), state, auth=True, grpc_port=port),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        make: Callable[[Any], Any] = a2a_pb2_grpc.A2AServiceStub
        stub = make(channel)
        mine = [("authorization", f"Bearer {keys['owner']}")]
        made = await stub.SendMessage(said(f"ask {TREASURE}"), metadata=mine, wait_for_ready=True)
        hook = PushConfig("p1", HOOK, token=TREASURE)
        await state.tasks.upsert_push_config(made.task.id, hook, owner="ana")
        yield Scene(stub, keys, made.task.id, state)


async def _answer(scene: Scene, method: str, request: Any, who: str) -> str:
    """The answer as text, or the code and the details of the error."""
    key = scene.keys[who]
    metadata = [("authorization", f"Bearer {key}")] if key else []
    call = getattr(scene.stub, method)(request, metadata=metadata)
    try:
        return str(await anext(aiter(call)) if method in STREAMS else await call)
    except grpc.aio.AioRpcError as error:
        return f"{error.code()} {error.details()}"


async def test_the_matrix_has_every_method_of_the_service() -> None:
    service = a2a.DESCRIPTOR.services_by_name["A2AService"]
    assert {method.name for method in service.methods} == set(ABOUT_A_TASK) | ABOUT_ALL


async def test_what_is_anothers_is_answered_as_what_never_was(scene: Scene) -> None:
    never = new_ref()
    before = await scene.state.tasks.get(scene.task, owner="ana")
    for who in (one for one in scene.keys if one != "owner"):
        for method, request in ABOUT_A_TASK.items():
            seen = await _answer(scene, method, request(scene.task), who)
            wanted = await _answer(scene, method, request(never), who)
            assert seen.replace(scene.task, never) == wanted, f"{method} by {who}"
            assert TREASURE not in seen, f"{method} by {who}"
            refused = who in {"revoked", "expired", "wrong", "nobody"}
            assert ("UNAUTHENTICATED" in seen) == refused, f"{method} by {who}: {seen}"
        listed = await _answer(scene, "ListTasks", a2a.ListTasksRequest(), who)
        assert scene.task not in listed, who
        assert TREASURE not in listed, who
    assert await scene.state.tasks.get(scene.task, owner="ana") == before
    [config] = await scene.state.tasks.list_push_configs(scene.task, owner="ana")
    assert config.id == "p1"


async def test_the_owner_gets_an_answer_of_each_method(scene: Scene) -> None:
    order = [name for name in ABOUT_A_TASK if name != "CancelTask" and "Send" not in name]
    for method in [*order, "SendMessage"]:
        seen = await _answer(scene, method, ABOUT_A_TASK[method](scene.task), "owner")
        assert "StatusCode" not in seen, f"{method}: {seen}"
