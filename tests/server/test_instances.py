"""Several instances on one database are one service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from a2a.types import a2a_pb2 as a2a

import holdfast
from holdfast import Settings, State
from holdfast.server.service import Service
from holdfast.values.ids import new_ref
from tests.server.running import MODERN, example_app, http_client, said, sent, serving, talking

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def _instance(
    database: str, tenant: str, *, gates: dict[str, asyncio.Event] | None = None, **how: Any
) -> AsyncIterator[tuple[Service, State]]:
    """A service with connections of its own."""
    async with (
        holdfast.open(database, tenant=tenant, settings=Settings(max_connections=6)) as state,
        serving(example_app(**(gates or {})), state, **how) as service,
    ):
        yield service, state


def _rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _hello(text: str) -> dict[str, Any]:
    parts = [{"text": text}]
    return {"message": {"messageId": new_ref(), "role": "ROLE_USER", "parts": parts}}


async def _events(response: httpx.Response) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """The events of a stream with their ids."""
    number = 0
    async for line in response.aiter_lines():
        if line.startswith("id:"):
            number = int(line.removeprefix("id:"))
        elif line.startswith("data:"):
            yield number, json.loads(line.removeprefix("data:"))["result"]


def _line(event: dict[str, Any]) -> str | None:
    update = event.get("artifactUpdate")
    return update["artifact"]["parts"][0]["text"] if update else None


async def test_a_stream_on_one_instance_sees_what_a_worker_of_the_other_does_and_resumes(
    database: str,
) -> None:
    tenant = new_ref()
    gates = {"line2": asyncio.Event()}
    async with (
        _instance(database, tenant, workers=0) as (front, _),
        _instance(database, tenant, gates=gates) as (back, state),
        http_client(headers=MODERN, timeout=60) as http,
    ):
        seen: list[tuple[int, dict[str, Any]]] = []
        body = _rpc("SendStreamingMessage", _hello("stream 6"))
        async with http.stream("POST", front.url, json=body) as response:
            async for event in _events(response):
                seen.append(event)
                if _line(event[1]) == "line 2\n":
                    # Cut in the middle: only this stream ends.
                    break
        task_id = seen[0][1]["task"]["id"]
        gates["line2"].set()
        again = _rpc("SubscribeToTask", {"id": task_id})
        cursor = {"Last-Event-ID": str(seen[-1][0])}
        async with http.stream("POST", back.url, json=again, headers=cursor) as response:
            seen += [event async for event in _events(response)]

        numbers = [number for number, _ in seen]
        assert numbers == sorted(set(numbers))
        lines = [line for _, event in seen if (line := _line(event))]
        assert lines == [f"line {number}\n" for number in range(6)]
        last = seen[-1][1]["statusUpdate"]["status"]
        assert last["state"] == "TASK_STATE_COMPLETED"

        # From its beginning, on either instance, the stream is the same to the letter.
        whole = []
        for service in (front, back):
            start = {"Last-Event-ID": "0"}
            async with http.stream("POST", service.url, json=again, headers=start) as response:
                whole.append([event async for event in _events(response)])
        assert whole[0] == whole[1]
        assert whole[0][-len(seen) + 1 :] == seen[1:]
        task = await state.tasks.get(task_id)
        assert task is not None
        assert whole[0][-1][0] == task.version


async def test_a_client_that_leaves_closes_only_its_own_stream(database: str) -> None:
    gates = {"go": asyncio.Event()}
    async with (
        _instance(database, new_ref(), gates=gates) as (service, _),
        talking(service) as client,
        http_client(headers=MODERN, timeout=60) as http,
    ):
        now = a2a.SendMessageConfiguration(return_immediately=True)
        async with talking(service, streaming=False) as quiet:
            [answer] = await sent(quiet, said("wait go", configuration=now))
        stays = client.subscribe(a2a.SubscribeToTaskRequest(id=answer.task.id))
        await anext(stays)
        body = _rpc("SubscribeToTask", {"id": answer.task.id})
        async with http.stream("POST", service.url, json=body) as response:
            await anext(_events(response))
            assert service._handler.streams == 2
        async with asyncio.timeout(30):
            while service._handler.streams != 1:
                await asyncio.sleep(0.01)
        gates["go"].set()
        rest = [event async for event in stays]
        assert rest[-1].status_update.status.state == a2a.TASK_STATE_COMPLETED


async def test_the_same_key_at_the_same_time_to_two_instances_is_one_task(database: str) -> None:
    tenant = new_ref()
    async with (
        _instance(database, tenant, workers=0) as (one, state),
        _instance(database, tenant, workers=0) as (two, _),
        http_client(headers=MODERN | {"Idempotency-Key": "k1"}, timeout=60) as http,
    ):

        async def send(service: Service, text: str) -> dict[str, Any]:
            params = _hello(text) | {"configuration": {"returnImmediately": True}}
            answer = await http.post(service.url, json=_rpc("SendMessage", params))
            found: dict[str, Any] = answer.json()
            return found

        answers = await asyncio.gather(*(send(to, "say hi") for to in (one, two) * 5))
        assert len({answer["result"]["task"]["id"] for answer in answers}) == 1
        assert (await state.tasks.list(count=True)).total == 1

        other = await send(two, "say something else")
        assert other["error"]["code"] == -32602
        assert other["error"]["data"][0]["metadata"] == {"conflict": "submit_key"}
        rest = await http.post(f"{one.url}/message:send", json=_hello("say something else"))
        reply = rest.json()["error"]
        assert (rest.status_code, reply["code"], reply["status"]) == (409, 409, "ALREADY_EXISTS")
        assert reply["message"].startswith("this Idempotency-Key was sent before")
        assert (await state.tasks.list(count=True)).total == 1


async def test_a_question_is_answered_through_another_instance_after_the_first_is_gone(
    database: str,
) -> None:
    tenant = new_ref()
    async with (
        _instance(database, tenant) as (first, _),
        talking(first, streaming=False) as client,
    ):
        [asked] = await sent(client, said("ask me"))
        assert asked.task.status.state == a2a.TASK_STATE_INPUT_REQUIRED
    async with (
        _instance(database, tenant) as (second, _),
        talking(second, streaming=False) as client,
        http_client(headers=MODERN | {"Idempotency-Key": "a1"}, timeout=60) as http,
    ):
        parts = [{"text": "the red one"}]
        ids = []
        for _ in range(2):
            answer = {"messageId": new_ref(), "role": "ROLE_USER", "parts": parts}
            body = _rpc("SendMessage", {"message": answer | {"taskId": asked.task.id}})
            found = (await http.post(second.url, json=body)).json()["result"]["task"]
            assert found["status"]["message"]["parts"][0]["text"] == "you said the red one"
            ids.append([one["messageId"] for one in found["history"]])
        assert ids[0] == ids[1]
        assert len(ids[0]) == 4


async def test_when_the_service_stops_streams_end_and_waiting_sends_are_answered(
    database: str,
) -> None:
    tenant = new_ref()
    async with (
        http_client(headers=MODERN, timeout=60) as http,
        _instance(database, tenant, workers=0) as (service, state),
    ):
        waiting = asyncio.create_task(
            http.post(service.url, json=_rpc("SendMessage", _hello("say hi")))
        )
        body = _rpc("SendStreamingMessage", _hello("say ho"))
        async with http.stream("POST", service.url, json=body) as response:
            events = _events(response)
            await anext(events)
            async with asyncio.timeout(30):
                while (await state.tasks.list(count=True)).total != 2:
                    await asyncio.sleep(0.01)
            service.stop()
            assert [event async for event in events] == []
        answer = (await waiting).json()
        assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
