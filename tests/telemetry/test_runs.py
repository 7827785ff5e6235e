"""Runs of handlers and steps are spans of the trace in which the task was submitted."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from typing import Any

import httpx
import pytest
from opentelemetry import trace

import holdfast
from holdfast import App, ChatMessage, State, TaskContext
from holdfast.cli.logs import JsonLines
from holdfast.runtime.worker import Worker
from holdfast.telemetry.logs import SpanIds
from tests.server.running import MODERN, example_app, http_client, serving
from tests.telemetry.spans import Kept

pytestmark = pytest.mark.asyncio(loop_scope="session")
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SECRET = "s3cret-content"  # noqa: S105 - what must not be in a span


def _of(kept: Kept, name: str) -> list[Any]:
    return [span for span in kept.spans if span.name == name]


async def _run(app: App, state: State) -> None:
    await Worker(app, state, name="w1", tenants=[state.tenant]).run_until_idle()


async def test_a_task_with_a_step_and_a_child_is_one_trace() -> None:
    kept, app = Kept(), App("writer")

    @app.handler
    async def write(task: TaskContext) -> Any:
        await task.step("fetch", lambda: SECRET)
        return await task.call("reader", "page 1")

    @app.handler(agent="reader")
    async def read(_task: TaskContext) -> str:
        return SECRET

    async with holdfast.open("memory:", telemetry=kept.telemetry) as state:
        task = await app.submit(state, SECRET, session_id="c1")
        await _run(app, state)
        ended = await state.tasks.get(task.id, messages_limit=0)
        assert ended is not None
        assert ended.state == "completed"
    [submit] = _of(kept, "submit tasks")
    in_trace = [one for one in kept.spans if one.context.trace_id == submit.context.trace_id]
    first, resumed = _of(kept, "invoke_agent writer")
    [child_submit], [child] = _of(kept, "submit_child tasks"), _of(kept, "invoke_agent reader")
    [step] = _of(kept, "execute_tool fetch")
    assert {first.parent.span_id, resumed.parent.span_id} == {submit.context.span_id}
    assert step.parent.span_id == first.context.span_id
    assert child_submit.parent.span_id == first.context.span_id
    assert child.parent.span_id == child_submit.context.span_id
    assert {first, resumed, child_submit, child, step} <= set(in_trace)
    assert len([one for one in in_trace if one.name == "claim tasks"]) == 3
    assert dict(first.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "writer",
        "gen_ai.conversation.id": "c1",
        "holdfast.task.id": task.id,
        "holdfast.task.attempt": 1,
        "holdfast.task.fence": 1,
        "holdfast.task.outcome": "submitted",
        "holdfast.worker": "w1",
    }
    assert resumed.attributes["holdfast.task.outcome"] == "completed"
    assert child.attributes["holdfast.task.parent_id"] == task.id
    assert step.attributes["gen_ai.operation.name"] == "execute_tool"
    assert step.attributes["gen_ai.tool.name"] == "fetch"
    assert SECRET not in " ".join(span.to_json() for span in kept.spans)


async def test_a_failed_step_and_a_failed_task_are_errors_without_their_text() -> None:
    kept, app = Kept(), App("writer")

    @app.handler(max_attempts=1)
    async def write(task: TaskContext) -> None:
        def broken() -> None:
            raise RuntimeError(SECRET)

        await task.step("fetch", broken)

    async with holdfast.open("memory:", telemetry=kept.telemetry) as state:
        await app.submit(state, "go")
        await _run(app, state)
    [step], [run] = _of(kept, "execute_tool fetch"), _of(kept, "invoke_agent writer")
    assert step.status.status_code is trace.StatusCode.ERROR
    assert step.attributes["error.type"] == "RuntimeError"
    assert run.status.status_code is trace.StatusCode.ERROR
    assert run.attributes["holdfast.task.outcome"] == "failed"
    assert SECRET not in " ".join(span.to_json() for span in kept.spans)


async def test_an_untraced_task_has_a_trace_of_its_own() -> None:
    kept, app = Kept(), App("writer")

    @app.handler
    async def write(_task: TaskContext) -> None:
        """Do nothing."""

    async with holdfast.open("memory:", telemetry=kept.telemetry) as state:
        tracing, state._connections.tracing = state._connections.tracing, None
        await state.for_tenant("acme").tasks.submit("writer", ChatMessage.user("x"))
        state._connections.tracing = tracing
        await _run(app, state.for_tenant("acme"))
    [run] = _of(kept, "invoke_agent writer")
    assert run.parent is None


async def test_two_tasks_at_once_keep_their_traces_apart() -> None:
    kept, app = Kept(), App("writer")
    both = asyncio.Barrier(2)

    @app.handler
    async def write(task: TaskContext) -> None:
        await both.wait()
        await task.step("fetch", lambda: 1)

    async with holdfast.open("memory:", telemetry=kept.telemetry) as state:
        for _ in range(2):
            await app.submit(state, "go")
        await _run(app, state)
    runs, steps = _of(kept, "invoke_agent writer"), _of(kept, "execute_tool fetch")
    assert len({run.context.trace_id for run in runs}) == 2
    assert {step.parent.span_id for step in steps} == {run.context.span_id for run in runs}
    for step in steps:
        [run] = [one for one in runs if one.context.span_id == step.parent.span_id]
        assert run.context.trace_id == step.context.trace_id
        assert run.attributes["holdfast.task.id"] == step.attributes["holdfast.task.id"]


@pytest.mark.parametrize("header", [f"00-{TRACE}-{SPAN}-01", "nonsense", f"00-{TRACE}-{SPAN}"])
async def test_the_header_of_a_request_is_the_parent_of_its_task(header: str) -> None:
    kept = Kept()
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "say hi"}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    async with (
        holdfast.open("memory:", telemetry=kept.telemetry) as state,
        serving(example_app(), state) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
    ):
        answer: httpx.Response = await http.post("/", json=body, headers={"traceparent": header})
        assert answer.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert "traceparent" not in answer.text
    [request] = _of(kept, "POST")
    [submit], [run] = _of(kept, "submit tasks"), _of(kept, "invoke_agent tester")
    assert run.parent.span_id == submit.context.span_id
    assert run.context.trace_id == submit.context.trace_id == request.context.trace_id
    assert request.attributes["http.response.status_code"] == 200
    if header.endswith("-01"):
        assert f"{request.context.trace_id:032x}" == TRACE
        assert f"{request.parent.span_id:016x}" == SPAN
    else:
        assert request.parent is None


async def test_a_method_that_a_client_made_up_names_no_span() -> None:
    kept = Kept()
    async with (
        holdfast.open("memory:", telemetry=kept.telemetry) as state,
        serving(example_app(), state) as service,
        http_client(base_url=service.url, headers=MODERN, timeout=60) as http,
    ):
        await http.request("MADEUP", "/tasks")
    [request] = _of(kept, "HTTP")
    assert request.attributes["http.request.method"] == "_OTHER"
    assert not _of(kept, "MADEUP")


async def test_a_log_line_has_the_ids_of_its_span() -> None:
    kept, app, shown = Kept(), App("writer"), io.StringIO()
    handler = logging.StreamHandler(shown)
    handler.setFormatter(JsonLines())
    handler.addFilter(SpanIds())
    log = logging.getLogger("holdfast.worker")

    @app.handler
    async def write(task: TaskContext) -> None:
        log.warning("in the handler", extra={"task": task.id})

    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        log.info("outside")
        async with holdfast.open("memory:", telemetry=kept.telemetry) as state:
            await app.submit(state, "go")
            await _run(app, state)
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    lines = {
        one["message"].split(":")[-1].strip(): one
        for one in map(json.loads, shown.getvalue().splitlines())
    }
    [run] = _of(kept, "invoke_agent writer")
    ids = (f"{run.context.trace_id:032x}", f"{run.context.span_id:016x}")
    for message in ("in the handler", "completed"):
        assert (lines[message]["trace_id"], lines[message]["span_id"]) == ids
    assert "trace_id" not in lines["outside"]
