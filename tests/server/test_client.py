"""The official client talks to the service, over JSON-RPC and over HTTP+JSON."""

from __future__ import annotations

import asyncio

import pytest
from a2a.client import Client
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import (
    A2AError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from holdfast import App, State, TaskContext
from tests.server.running import example_app, said, sent, serving, talking

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"]),
]
NOW = a2a.SendMessageConfiguration(return_immediately=True)


async def _task(client: Client, text: str, **how: object) -> a2a.Task:
    [answer] = await sent(client, said(text, **how))
    return answer.task


def _states(events: list[a2a.StreamResponse]) -> list[str]:
    return [
        a2a.TaskState.Name(one.status_update.status.state).removeprefix("TASK_STATE_")
        for one in events
        if one.HasField("status_update")
    ]


async def test_a_blocking_send_answers_with_the_finished_task(state: State, binding: str) -> None:
    async with (
        serving(example_app(), state) as service,
        talking(service, binding=binding, streaming=False) as client,
    ):
        task = await _task(client, "say hello")
        assert task.status.state == a2a.TASK_STATE_COMPLETED
        assert task.status.message.parts[0].text == "done: hello"
        assert [one.parts[0].text for one in task.history] == ["say hello", "done: hello"]
        got = await client.get_task(a2a.GetTaskRequest(id=task.id))
        assert got == task
        short = await client.get_task(a2a.GetTaskRequest(id=task.id, history_length=1))
        assert [one.parts[0].text for one in short.history] == ["done: hello"]
        none = await client.get_task(a2a.GetTaskRequest(id=task.id, history_length=0))
        assert not none.history


async def test_a_stream_tells_all_that_happens_in_order_and_ends(
    state: State, binding: str
) -> None:
    async with (
        serving(example_app(), state) as service,
        talking(service, binding=binding) as client,
    ):
        events = await sent(client, said("stream 3"))
        assert events[0].task.status.state == a2a.TASK_STATE_SUBMITTED
        pieces = [one.artifact_update for one in events if one.HasField("artifact_update")]
        text = "".join(one.artifact.parts[0].text for one in pieces)
        assert text == "line 0\nline 1\nline 2\n"
        assert [one.append for one in pieces] == [False, True, True]
        spoken = [
            one.status_update.status.message.parts[0].text
            for one in events
            if one.status_update.status.HasField("message")
        ]
        assert spoken == ["wrote 0", "wrote 1", "wrote 2", "done: 3"]
        assert _states(events) == ["WORKING"] * 4 + ["COMPLETED"]


async def test_a_question_is_answered_by_a_message_to_the_task(state: State, binding: str) -> None:
    async with (
        serving(example_app(), state) as service,
        talking(service, binding=binding, streaming=False) as client,
    ):
        asked = await _task(client, "ask me")
        assert asked.status.state == a2a.TASK_STATE_INPUT_REQUIRED
        assert asked.status.message.parts[0].text == "which one?"
        with pytest.raises(InvalidParamsError):
            await _task(client, "the red one", task_id=asked.id, context_id="another")
        done = await _task(client, "the red one", task_id=asked.id)
        assert done.id == asked.id
        assert done.context_id == asked.context_id
        assert done.status.message.parts[0].text == "you said the red one"
        with pytest.raises(UnsupportedOperationError):
            await _task(client, "another", task_id=asked.id, message_id="late")


async def test_messages_of_one_id_are_kept_apart_by_what_they_say(
    state: State, binding: str
) -> None:
    app = App("asker")

    @app.handler
    async def ask_twice(task: TaskContext) -> str:
        """Asks twice."""
        said = [(await task.ask("which one?")).text, (await task.ask("which other?")).text]
        return " and ".join(said)

    async with (
        serving(app, state) as service,
        talking(service, binding=binding, streaming=False) as client,
    ):
        asked = await _task(client, "go", message_id="one")
        for text in ("red", "red"):
            # The second is a repetition of the first, and answers nothing.
            await _task(client, text, task_id=asked.id, message_id="one")
        done = await _task(client, "blue", task_id=asked.id, message_id="one")
        assert done.status.message.parts[0].text == "red and blue"
        reply = [
            (one.message_id, one.parts[0].text) for one in done.history if one.role == a2a.ROLE_USER
        ]
        assert reply == [("one", "go"), ("one", "red"), ("one", "blue")]


async def test_one_message_id_is_one_message_where_that_is_set(state: State, binding: str) -> None:
    async with (
        serving(example_app(), state, dedupe_message_ids=True) as service,
        talking(service, binding=binding, streaming=False) as client,
    ):
        asked = await _task(client, "ask me", message_id="one")
        with pytest.raises(InvalidParamsError, match="sent before with another content"):
            await _task(client, "red", task_id=asked.id, message_id="one")


async def test_a_stream_ends_where_the_task_asks(state: State, binding: str) -> None:
    async with (
        serving(example_app(), state) as service,
        talking(service, binding=binding) as client,
    ):
        events = await sent(client, said("ask me"))
        assert _states(events) == ["WORKING", "INPUT_REQUIRED"]
        rest = await sent(client, said("the red one", task_id=events[0].task.id))
        assert _states(rest) == ["WORKING", "COMPLETED"]


async def test_tasks_are_listed_by_page(state: State, binding: str) -> None:
    async with (
        serving(example_app(), state) as service,
        talking(service, binding=binding, streaming=False) as client,
    ):
        made = [(await _task(client, f"say {n}", context_id="c1")).id for n in range(5)]
        other = await _task(client, "ask", context_id="c2")
        seen: list[str] = []
        token = ""
        while True:
            page = await client.list_tasks(
                a2a.ListTasksRequest(context_id="c1", page_size=2, page_token=token)
            )
            assert page.total_size == 5
            seen += [task.id for task in page.tasks]
            token = page.next_page_token
            if not token:
                break
        assert seen == list(reversed(made))
        waiting = await client.list_tasks(
            a2a.ListTasksRequest(status=a2a.TASK_STATE_INPUT_REQUIRED, history_length=5)
        )
        assert [task.id for task in waiting.tasks] == [other.id]
        assert len(waiting.tasks[0].history) == 2
        for wrong in (
            a2a.ListTasksRequest(page_size=0),
            a2a.ListTasksRequest(page_size=101),
            a2a.ListTasksRequest(page_token="nonsense"),  # noqa: S106 - a cursor
            a2a.ListTasksRequest(history_length=-1),
        ):
            with pytest.raises(InvalidParamsError):
                await client.list_tasks(wrong)


async def test_a_task_is_cancelled_once(state: State, binding: str) -> None:
    async with (
        serving(example_app(), state) as service,
        talking(service, binding=binding, streaming=False) as client,
    ):
        asked = await _task(client, "ask me")
        task = await client.cancel_task(a2a.CancelTaskRequest(id=asked.id))
        assert task.status.state == a2a.TASK_STATE_CANCELED
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(a2a.CancelTaskRequest(id=asked.id))
        with pytest.raises(TaskNotFoundError):
            await client.cancel_task(a2a.CancelTaskRequest(id="nobody"))


async def test_subscribers_see_the_task_and_then_its_news(state: State, binding: str) -> None:
    gate = asyncio.Event()
    async with (
        serving(example_app(go=gate), state) as service,
        talking(service, binding=binding) as client,
        talking(service, binding=binding, streaming=False) as quiet,
    ):
        task = await _task(quiet, "wait go", configuration=NOW)
        streams = [client.subscribe(a2a.SubscribeToTaskRequest(id=task.id)) for _ in range(2)]
        firsts = [await anext(one) for one in streams]
        assert [one.task.id for one in firsts] == [task.id] * 2
        gate.set()
        for stream in streams:
            assert _states([event async for event in stream])[-1] == "COMPLETED"
        with pytest.raises(A2AError):
            await anext(client.subscribe(a2a.SubscribeToTaskRequest(id=task.id)))
        with pytest.raises(A2AError):
            await anext(client.subscribe(a2a.SubscribeToTaskRequest(id="nobody")))


async def test_push_configs_are_kept_by_task(state: State, binding: str) -> None:
    async with (
        serving(example_app(), state) as service,
        talking(service, binding=binding, streaming=False) as client,
    ):
        task = await _task(client, "ask me")
        for number in range(3):
            made = await client.create_task_push_notification_config(
                a2a.TaskPushNotificationConfig(
                    id=f"p{number}",
                    task_id=task.id,
                    url="https://example.org/hook",
                    token="t",  # noqa: S106 - the test's own
                    authentication=a2a.AuthenticationInfo(scheme="Bearer", credentials="c"),
                )
            )
            assert made.id == f"p{number}"
            assert (made.token, made.authentication.credentials) == ("***", "***")
        one = await client.get_task_push_notification_config(
            a2a.GetTaskPushNotificationConfigRequest(task_id=task.id, id="p1")
        )
        assert one.url == "https://example.org/hook"
        assert one.authentication.scheme == "Bearer"
        assert (one.token, one.authentication.credentials) == ("***", "***")
        page = await client.list_task_push_notification_configs(
            a2a.ListTaskPushNotificationConfigsRequest(task_id=task.id, page_size=2)
        )
        assert [config.id for config in page.configs] == ["p0", "p1"]
        assert {config.token for config in page.configs} == {"***"}
        rest = await client.list_task_push_notification_configs(
            a2a.ListTaskPushNotificationConfigsRequest(
                task_id=task.id, page_size=2, page_token=page.next_page_token
            )
        )
        assert [config.id for config in rest.configs] == ["p2"]
        assert rest.next_page_token == ""
        for _ in range(2):
            await client.delete_task_push_notification_config(
                a2a.DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="p1")
            )
        with pytest.raises(TaskNotFoundError):
            await client.get_task_push_notification_config(
                a2a.GetTaskPushNotificationConfigRequest(task_id=task.id, id="p1")
            )
        with pytest.raises(InvalidParamsError):
            await client.create_task_push_notification_config(
                a2a.TaskPushNotificationConfig(task_id=task.id, url="http://169.254.169.254/")
            )


async def test_a_failed_task_tells_nothing_of_what_is_inside(state: State, binding: str) -> None:
    async with (
        serving(example_app(), state) as service,
        talking(service, binding=binding, streaming=False) as client,
    ):
        task = await _task(client, "fail now")
        assert task.status.state == a2a.TASK_STATE_FAILED
        assert "hunter2" not in str(task)
