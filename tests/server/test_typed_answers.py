"""Answers over A2A are checked as all others are."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import App, State, TaskContext
from holdfast.values.ids import new_ref
from tests.server.running import MODERN, http_client, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


def _app() -> App:
    app = App("tester")

    @app.handler
    async def book(task: TaskContext) -> Any:
        schema = {"properties": {"seats": {"type": "integer"}}, "required": ["seats"]}
        order = await task.ask("How many seats?", schema={"type": "object"} | schema)
        return f"{order['seats']} seats"

    return app


def _send(part: dict[str, Any], task_id: str = "") -> dict[str, Any]:
    message = {"messageId": new_ref(), "role": "ROLE_USER", "parts": [part]}
    return {"message": message | ({"taskId": task_id} if task_id else {})}


async def test_an_answer_that_does_not_fit_is_refused_by_its_path_and_one_that_fits_is_taken(
    state: State,
) -> None:
    ana, ben = [(await state.keys.create(owner)).text for owner in ("ana", "ben")]
    async with (
        serving(_app(), state, auth=True) as service,
        http_client(base_url=service.url, timeout=60) as client,
    ):

        async def send(key: str, part: dict[str, Any], task_id: str = "") -> Any:
            headers = {**MODERN, "Authorization": f"Bearer {key}"}
            return await client.post("/message:send", headers=headers, json=_send(part, task_id))

        asked = (await send(ana, {"text": "the ferry"})).json()["task"]
        assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        wanted = asked["status"]["message"]["metadata"]["schema"]
        assert wanted["properties"] == {"seats": {"type": "integer"}}
        for wrong in ({"text": "two"}, {"data": {"seats": "2"}}, {"text": "[" * 50_000}):
            refused = await send(ana, wrong, asked["id"])
            assert refused.status_code == 400, refused.text
            assert "message" in refused.text
        assert "message.seats" in (await send(ana, {"data": {"seats": "2"}}, asked["id"])).text
        assert (await send(ben, {"data": {"seats": 2}}, asked["id"])).status_code == 404
        done = (await send(ana, {"data": {"seats": 2}}, asked["id"])).json()["task"]
        assert done["status"]["state"] == "TASK_STATE_COMPLETED"
        assert done["status"]["message"]["parts"][0]["text"] == "2 seats"
