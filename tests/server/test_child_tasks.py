"""Tasks that tasks submit are of no concern to the clients of their owner."""

from __future__ import annotations

import pytest

from holdfast import ChatMessage, State
from holdfast.ops import KeyScope
from holdfast.values.tasks.events import StepKey
from tests.server.running import MODERN, example_app, http_client, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")
SECRET = "the margin is 40 percent"  # noqa: S105 - a text to look for


async def test_a_client_sees_no_child_of_its_task_and_an_operator_does(state: State) -> None:
    await state.tasks.submit("tester", ChatMessage.user("hello"), owner="ana")
    [claimed] = await state.tasks.claim("w1", agents=["tester"])
    child = await state.tasks.submit_child(
        claimed.lease, StepKey("first", kind="child"), "pricing", ChatMessage.user(SECRET)
    )
    keys = {
        scope: (await state.keys.create("ana", scope=scope)).text
        for scope in (KeyScope.OWNER, KeyScope.OPERATOR)
    }
    async with (
        serving(example_app(), state, auth=True, workers=0) as service,
        http_client(base_url=service.url) as client,
    ):
        for scope, seen in ((KeyScope.OWNER, False), (KeyScope.OPERATOR, True)):
            headers = {**MODERN, "Authorization": f"Bearer {keys[scope]}"}
            listed = await client.get("/tasks?historyLength=5", headers=headers)
            one = await client.get(f"/tasks/{child.id}", headers=headers)
            assert (SECRET in listed.text, SECRET in one.text) == (seen, seen)
            assert one.status_code == (200 if seen else 404)
            assert listed.json()["totalSize"] == (2 if seen else 1)
            asked = {"jsonrpc": "2.0", "id": 1, "method": "contexts/list", "params": {}}
            contexts = (await client.post("/", headers=headers, json=asked)).json()["result"]
            assert [one["tasks"] for one in contexts["contexts"]] == ([1, 1] if seen else [1])
        headers = {**MODERN, "Authorization": f"Bearer {keys[KeyScope.OWNER]}"}
        refused = await client.post(f"/tasks/{child.id}:cancel", headers=headers, json={})
        assert refused.status_code == 404
    found = await state.tasks.get(child.id)
    assert found is not None
    assert str(found.state) == "submitted"


async def test_requests_of_a_service_are_stored_with_the_key_that_made_them(state: State) -> None:
    key = await state.keys.create("ana")
    headers = {**MODERN, "Authorization": f"Bearer {key.text}"}
    async with (
        serving(example_app(), state, auth=True, workers=0) as service,
        http_client(base_url=service.url) as client,
    ):
        part = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
        body = {"message": part, "configuration": {"returnImmediately": True}}
        sent = (await client.post("/message:send", headers=headers, json=body)).json()["task"]
        await client.post(f"/tasks/{sent['id']}:cancel", headers=headers, json={})
        # What schedules set, no client can.
        for name in ("schedule_id", "scheduled_at"):
            wrong = {**body, "message": {**part, "messageId": name}, "metadata": {name: "daily"}}
            refused = await client.post("/message:send", headers=headers, json=wrong)
            assert (refused.status_code, f"metadata.{name}" in refused.text) == (400, True)
    assert len((await state.tasks.list()).tasks) == 1
    moves = [one for one in await state.tasks.events(sent["id"]) if one.kind == "transition"]
    assert [one.by_name for one in moves] == [f"key {key.key.id}"] * 2
