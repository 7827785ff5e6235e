"""``holdfast tasks``: shows durable tasks and acts on them."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from holdfast.cli import tasks_changes, tasks_links, tasks_many, tasks_replay, tasks_watch
from holdfast.cli.open_state import none_there, open_shared
from holdfast.cli.options import (
    Before,
    By,
    HeldBy,
    IdPrefix,
    Json,
    OfAgent,
    OfContext,
    OfOwner,
    Since,
    States,
    TaskId,
    Tenant,
    Text,
)
from holdfast.cli.task_ids import full_id
from holdfast.cli.tasks_act import act, act_on
from holdfast.cli.tasks_links import awaited
from holdfast.cli.timeline import draw_head, draw_lines
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.runtime.child_agents import was_claimed
from holdfast.values.as_json import jsonable
from holdfast.values.content import ChatMessage
from holdfast.values.errors import NotFoundError
from holdfast.values.lifecycle import TaskState
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.records import MAX_ATTEMPTS, TaskPage, TaskRecord

app = typer.Typer(
    help="Look at durable tasks, and act on them. As an operator you see the tasks of all owners.",
    no_args_is_help=True,
)
_out = Console(highlight=False)
_err = Console(highlight=False, stderr=True)

Note = Annotated[str, typer.Option(help="Why; it is kept in the timeline.")]


@app.command("list")
def list_tasks(
    *,
    state: States = None,
    agent: OfAgent = None,
    owner: OfOwner = None,
    context: OfContext = None,
    since: Since = None,
    before: Before = None,
    text: Text = None,
    id_prefix: IdPrefix = None,
    worker: HeldBy = None,
    oldest: Annotated[
        bool, typer.Option("--oldest", help="The oldest change of state first.")
    ] = False,
    limit: Annotated[int, typer.Option(min=0, help="How many.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="Go on where a page ended.")] = None,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """List tasks, ordered by last change of state, newest first.

    For example:

        holdfast tasks list --state input-required

        holdfast tasks list --agent researcher --owner ana --limit 50 --json

        holdfast tasks list --text tides --oldest
    """

    async def work() -> TaskPage:
        async with open_shared(tenant) as opened:
            return await opened.tasks.list(
                owner=owner,
                states=state or None,
                agent=agent,
                session_id=context,
                updated_after=since.astimezone() if since else None,
                limit=limit,
                cursor=cursor,
                updated_before=before.astimezone() if before else None,
                text=text,
                id_prefix=id_prefix,
                worker=worker,
                order="oldest" if oldest else "newest",
                first_message=True,
                count=True,
            )

    page = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(page)))
        return
    if not page.tasks:
        asked = any(
            one is not None
            for one in (
                state,
                agent,
                owner,
                context,
                since,
                before,
                text,
                id_prefix,
                worker,
                cursor,
            )
        )
        typer.echo(none_there("tasks", tenant, filtered=asked or not limit))
        return
    _out.print(tasks_watch.table_of(page.tasks, total=page.total or 0))
    if page.next_cursor:
        _out.print(f"[dim]more: --cursor {page.next_cursor}[/]", soft_wrap=True)


@app.command()
def show(task_id: TaskId, *, tenant: Tenant = "", as_json: Json = False) -> None:
    """Show the timeline of a task: attempts, changes of state, steps, messages, artifacts.

    Each line has its number (for replay), its time, and the time since the line before; for a step
    that is about its duration.

    For example:

        holdfast tasks show 7f3e90aa

        holdfast tasks show 7f3e90aa --json | jq '.timeline[] | select(.kind == "step")'
    """

    async def work() -> tuple[TaskRecord | None, Any, list[TaskRecord]]:
        async with open_shared(tenant) as state:
            found = await full_id(state.tasks, task_id)
            task = await state.tasks.get(found, owner=ANY_OWNER)
            events = await state.tasks.events(found, owner=ANY_OWNER)
            return task, events, await awaited(state.tasks, task)

    task, events, children = asyncio.run(work())
    if task is None:
        # The task's context was cleared between the two reads.
        raise NotFoundError("task", task_id)
    if as_json:
        typer.echo(json.dumps({**jsonable(task), "timeline": jsonable(events)}))
        return
    _out.print(draw_head(task, children))
    _out.print()
    _out.print(draw_lines(events))


@app.command()
def submit(
    agent: Annotated[str, typer.Argument(help="The agent that runs the task.")],
    text: Annotated[str, typer.Argument(help="The first message of the task.")],
    *,
    context: Annotated[str, typer.Option(help="The conversation that it is part of.")] = "",
    owner: Annotated[str, typer.Option(help="The owner of the task.")] = "",
    key: Annotated[
        str, typer.Option(help="Idempotency key: with it, a retry submits no second task.")
    ] = "",
    max_attempts: Annotated[
        int,
        typer.Option(
            min=1,
            help="How many attempts without progress it may have; fewer if its handler says so.",
        ),
    ] = MAX_ATTEMPTS,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Queue a task for an agent and print its id; a worker runs it.

    Only the id goes to standard output, so that a script can use it.

    For example:

        holdfast tasks submit researcher "Tides of Brest?"

        id=$(holdfast tasks submit researcher "Tides of Brest?")

        holdfast tasks submit researcher "Tides of Brest?" --key order-7 --json
    """

    async def queued(ledger: TaskLedger) -> TaskRecord:
        task = await ledger.submit(
            agent,
            ChatMessage.user(text),
            session_id=context,
            owner=owner,
            submit_key=key,
            max_attempts=max_attempts,
        )
        if not await was_claimed(ledger, agent):
            _err.print(
                f"[yellow]no task of the agent {escape(agent)} was ever claimed:[/] if no worker "
                "with a handler of that name runs, start one (holdfast worker module:app)",
                soft_wrap=True,
            )
        if not as_json:
            hint = f"{task.state}; follow it: holdfast tasks watch {escape(task.id)}"
            _err.print(f"[dim]{hint}[/]", soft_wrap=True)
        return task

    act(tenant, queued, as_json=as_json, describe=lambda task: task.id, creates=True)


@app.command()
def answer(
    task_id: TaskId,
    text: Annotated[str, typer.Argument(help="The answer.")],
    *,
    by: By = "",
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Answer the question of a task that is input-required or auth-required.

    The task goes back to the queue, and any worker continues it.

    For example:

        holdfast tasks answer 7f3e90aa "the second chapter"
    """
    act_on(
        task_id,
        tenant,
        lambda ledger, found: ledger.respond(found, ChatMessage.user(text), owner=ANY_OWNER, by=by),
        as_json=as_json,
        describe=_answered,
    )


def _answered(task: TaskRecord) -> str:
    if task.state is TaskState.PAUSED:
        return (
            f"The answer is stored. Task {task.id} is paused, and no worker continues it.\n"
            f"Resume it: holdfast tasks resume {task.id}"
        )
    return (
        f"The answer is stored. Task {task.id} is queued, and a worker continues it.\n"
        f"Follow it: holdfast tasks watch {task.id}\n"
        "If no worker is running, start one: holdfast worker module:app"
    )


@app.command()
def cancel(
    task_id: TaskId,
    *,
    children: Annotated[
        bool, typer.Option("--children", help="Also all tasks that it and they submitted.")
    ] = False,
    note: Note = "",
    by: By = "",
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Cancel a task: at once if no worker runs it, otherwise at its worker's next heartbeat.

    A task that has ended is not changed.
    """
    act_on(
        task_id,
        tenant,
        lambda ledger, found: ledger.cancel(
            found, owner=ANY_OWNER, note=note, children=children, by=by
        ),
        as_json=as_json,
    )


@app.command()
def pause(
    task_id: TaskId, *, note: Note = "", by: By = "", tenant: Tenant = "", as_json: Json = False
) -> None:
    """Pause a task: at once if it is queued, otherwise at the next step of its handler."""
    act_on(
        task_id,
        tenant,
        lambda ledger, found: ledger.pause(found, owner=ANY_OWNER, note=note, by=by),
        as_json=as_json,
    )


@app.command()
def resume(
    task_id: TaskId, *, note: Note = "", by: By = "", tenant: Tenant = "", as_json: Json = False
) -> None:
    """Continue a paused task, or withdraw a requested pause that has not happened yet."""
    act_on(
        task_id,
        tenant,
        lambda ledger, found: ledger.resume(found, owner=ANY_OWNER, note=note, by=by),
        as_json=as_json,
    )


@app.command()
def retry(
    task_id: TaskId,
    *,
    key: Annotated[
        str, typer.Option(help="Idempotency key: with it, a repeated call makes no second task.")
    ] = "",
    by: By = "",
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Run an ended task again from the beginning, as a new task in the same context.

    `tasks resume-failed` continues from the last stored step instead. The old task is not changed;
    the new one refers to it in `retry_of`.
    """
    act_on(
        task_id,
        tenant,
        lambda ledger, found: ledger.retry(found, owner=ANY_OWNER, submit_key=key, by=by),
        as_json=as_json,
    )


@app.command("resume-failed")
def resume_failed(
    task_id: TaskId,
    *,
    key: Annotated[
        str, typer.Option(help="Idempotency key: with it, a repeated call makes no second task.")
    ] = "",
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Continue a failed task from its last stored step, as a new task in the same context.

    `tasks retry` starts from the beginning instead.
    """
    act_on(
        task_id,
        tenant,
        lambda ledger, found: ledger.resume_failed(found, owner=ANY_OWNER, submit_key=key),
        as_json=as_json,
    )


@app.command()
def fork(
    task_id: TaskId,
    *,
    at: Annotated[int, typer.Option(min=2, help="The number of the event, as `show` has it.")],
    text: Annotated[str, typer.Option(help="Begin with this instead of its first message.")] = "",
    key: Annotated[
        str, typer.Option(help="Idempotency key: with it, a repeated call makes no second fork.")
    ] = "",
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Make a new task with the steps, answers and artifacts that a task had after an event.

    For example:

        holdfast tasks fork 7f3e90aa --at 12
    """
    said = ChatMessage.user(text) if text else None
    act_on(
        task_id,
        tenant,
        lambda ledger, found: ledger.fork(found, at, message=said, owner=ANY_OWNER, submit_key=key),
        as_json=as_json,
    )


# In the order of the help: what is used most stands first.
app.command("watch")(tasks_watch.watch)
app.command("replay")(tasks_replay.replay)
tasks_many.add_to(app)
tasks_changes.add_to(app)
tasks_links.add_to(app)
