"""Tools for durable tasks."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from holdfast.adapters.mcp.tool import Caller, Limit, Tool
from holdfast.runtime.content import text_and_data
from holdfast.values.content import ChatMessage
from holdfast.values.errors import NotFoundError
from holdfast.values.lifecycle import WAITING
from holdfast.values.tasks.records import TaskRecord

_TASK_BYTES = 1 << 20
"""How many bytes of messages and artifacts ``get_task`` reads at most."""


class ListTasks(msgspec.Struct):
    """The arguments of ``list_tasks``."""

    states: Annotated[
        list[str] | None, Meta(description="Only these states, such as input-required.")
    ] = None
    limit: Limit = 20
    cursor: Annotated[str | None, Meta(description="That of the page before.")] = None


class TaskId(msgspec.Struct):
    """The id of a task."""

    id: Annotated[str, Meta(min_length=1, description="The id of the task.")]


class SubmitTask(msgspec.Struct):
    """The arguments of ``submit_task``."""

    agent: Annotated[str, Meta(min_length=1, description="The agent that is to do it.")]
    text: Annotated[str, Meta(min_length=1, description="What it is to do.")]
    key: Annotated[
        str | None, Meta(description="An id of your own: with it, a retry submits no second task.")
    ] = None


class AnswerTask(msgspec.Struct):
    """The arguments of ``answer_task``."""

    id: Annotated[str, Meta(min_length=1, description="The id of the task.")]
    text: Annotated[
        str,
        Meta(
            min_length=1,
            description="The answer to its question: one of its options, or JSON that fits its "
            "answer_schema, where it has them.",
        ),
    ]


class TaskAnswer(msgspec.Struct):
    """A durable task."""

    id: str
    agent: str
    state: str
    updated_at: str
    note: str
    question: str
    """The question that the task asks; empty unless the task waits for an answer."""

    options: list[str]
    """The answers that the question takes; empty if it takes others too."""

    answer_schema: dict[str, Any] | None
    """The JSON Schema that the answer must fit, as JSON text; null if any text is an answer."""

    messages: list[str]
    artifacts: list[str]
    """The names of the artifacts that the task has produced."""

    result: Any = None
    """What the agent returned; only of ``get_task``."""


class Tasks(msgspec.Struct):
    """A page of tasks, the newest first."""

    tasks: list[TaskAnswer]
    cursor: str | None


async def _list_tasks(caller: Caller, asked: ListTasks) -> Tasks:
    page = await caller.state.tasks.list(
        states=asked.states, limit=asked.limit, cursor=asked.cursor
    )
    return Tasks([_task(one) for one in page.tasks], page.next_cursor)


async def _get_task(caller: Caller, asked: TaskId) -> TaskAnswer:
    found = await caller.state.tasks.get(asked.id, messages_limit=20, max_bytes=_TASK_BYTES)
    if found is None:
        raise NotFoundError("task", asked.id)
    return msgspec.structs.replace(_task(found), result=found.result)


async def _submit_task(caller: Caller, asked: SubmitTask) -> TaskAnswer:
    made = await caller.state.tasks.submit(
        asked.agent, ChatMessage.user(asked.text), submit_key=asked.key
    )
    return _task(made)


async def _answer_task(caller: Caller, asked: AnswerTask) -> TaskAnswer:
    return _task(await caller.state.tasks.respond(asked.id, ChatMessage.user(asked.text)))


async def _cancel_task(caller: Caller, asked: TaskId) -> TaskAnswer:
    return _task(await caller.state.tasks.cancel(asked.id))


def _task(found: TaskRecord) -> TaskAnswer:
    asked = found.status_message if found.state in WAITING else None
    wanted = asked.metadata if asked else {}
    return TaskAnswer(
        found.id,
        str(found.agent),
        str(found.state),
        found.updated_at.isoformat(),
        found.note,
        text_and_data(asked.content) if asked else "",
        wanted.get("options") or [],
        wanted.get("schema"),
        [f"{one.role}: {text_and_data(one.content)}" for one in found.messages],
        [one.name or one.id for one in found.artifacts],
    )


TASK_TOOLS = (
    Tool(
        "list_tasks",
        "List Tasks",
        "List durable tasks: those of agents that run elsewhere and survive restarts.",
        ListTasks,
        Tasks,
        _list_tasks,
        reads=True,
    ),
    Tool(
        "get_task",
        "Get Task",
        "Return a durable task with its newest messages, its question and its result.",
        TaskId,
        TaskAnswer,
        _get_task,
        reads=True,
    ),
    Tool(
        "submit_task",
        "Submit Task",
        "Submit a durable task to an agent. A worker of that agent runs it.",
        SubmitTask,
        TaskAnswer,
        _submit_task,
    ),
    Tool(
        "answer_task",
        "Answer Task",
        "Answer the question of a task that waits for input.",
        AnswerTask,
        TaskAnswer,
        _answer_task,
    ),
    Tool(
        "cancel_task",
        "Cancel Task",
        "Cancel a task that has not ended.",
        TaskId,
        TaskAnswer,
        _cancel_task,
        deletes=True,
    ),
)
