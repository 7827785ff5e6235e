"""What one owner and one task may take of the deliveries, over a running service."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from a2a.types import a2a_pb2 as a2a
from a2a.types import a2a_pb2_grpc

import holdfast
from holdfast import State
from holdfast.testing.postgres_server import free_port
from tests.server.running import MODERN, example_app, http_client, serving
from tests.server.test_push import Receiver
from tests.server.test_push_faults import Hanging, _answering, _stop_deliveries

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _submit(state: State, owner: str, *urls: str) -> None:
    push = [holdfast.PushConfig(f"p{at}", url) for at, url in enumerate(urls)]
    said = holdfast.ChatMessage.user("say hi")
    await state.tasks.submit("tester", said, owner=owner, push=push)


async def test_hanging_hooks_of_one_owner_delay_no_other_owner_of_the_tenant(
    state: State,
) -> None:
    """The hooks hang for as long as the test runs: the others can arrive only beside them."""
    hanging, receiver = Hanging(), Receiver()
    async with (
        _answering(hanging.serve) as slow,
        receiver.listening() as url,
        serving(
            example_app(),
            state,
            push_allow_private=True,
            push_seconds=3600,
            push_per_tenant=4,
            push_per_owner=3,
        ) as service,
    ):
        await _submit(state, "eve", *[slow] * 20)
        async with asyncio.timeout(60):
            while hanging.connections < 3:
                await asyncio.sleep(0.01)
        await _submit(state, "ana", url)
        await receiver.until(3)
        await _submit(state, "", url)
        await receiver.until(6)
        assert (hanging.connections, hanging.closed) == (3, 0)
        _stop_deliveries(service)


async def test_a_task_has_at_most_so_many_push_configs_by_whatever_door(state: State) -> None:
    key = (await state.keys.create("ana")).text
    port, hook = free_port(), "https://example.org/hook"
    async with (
        serving(
            example_app(), state, auth=True, grpc_port=port, push_configs=2, workers=0
        ) as service,
        http_client(
            base_url=service.url,
            headers=MODERN | {"Authorization": f"Bearer {key}"},
            timeout=60,
        ) as http,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):

        async def rpc(method: str, params: dict[str, Any], **headers: str) -> Any:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return (await http.post("/", json=body, headers=headers)).json()

        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "say hi"}]}
        configuration = {
            "returnImmediately": True,
            "taskPushNotificationConfig": {"id": "p0", "url": hook},
        }
        sent = await rpc("SendMessage", {"message": message, "configuration": configuration})
        task_id = sent["result"]["task"]["id"]
        path = f"/tasks/{task_id}/pushNotificationConfigs"
        assert (await http.post(path, json={"id": "p1", "url": hook})).status_code == 200
        refused = await http.post(path, json={"id": "p2", "url": hook})
        assert refused.status_code == 400
        assert "2 push configs, which is the limit" in refused.json()["error"]["message"]
        reply = await rpc(
            "CreateTaskPushNotificationConfig", {"taskId": task_id, "id": "p3", "url": hook}
        )
        assert reply["error"]["code"] == -32602
        old = await rpc(
            "tasks/pushNotificationConfig/set",
            {"taskId": task_id, "pushNotificationConfig": {"id": "p4", "url": hook}},
            **{"A2A-Version": ""},
        )
        assert old["error"]["code"] == -32602
        stub: Any = a2a_pb2_grpc.A2AServiceStub(channel)  # type: ignore[no-untyped-call]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.CreateTaskPushNotificationConfig(
                a2a.TaskPushNotificationConfig(task_id=task_id, id="p5", url=hook),
                metadata=[("authorization", f"Bearer {key}")],
                wait_for_ready=True,
            )
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        # One that is there can be changed.
        changed = await http.post(path, json={"id": "p1", "url": hook + "/new"})
        assert changed.status_code == 200
    configs = await state.tasks.list_push_configs(task_id, owner="ana")
    assert [one.id for one in configs] == ["p0", "p1"]
