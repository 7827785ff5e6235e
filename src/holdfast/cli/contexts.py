"""``holdfast contexts``: the conversations that tasks share."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from holdfast.cli.format import state_mark
from holdfast.cli.open_state import none_there, open_shared
from holdfast.cli.options import Json, Tenant
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.runtime.cleanup import clear_context
from holdfast.values.as_json import jsonable
from holdfast.values.errors import ConfigError, InvalidInputError, NotFoundError
from holdfast.values.formats import ago, clock
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.records import ContextPage, ContextRecord, TaskRecord

app = typer.Typer(
    help="Look at the conversations that tasks share, and clear them.", no_args_is_help=True
)
_out = Console(highlight=False)

ContextId = Annotated[str, typer.Argument(metavar="ID", help="The context's id.")]
Owner = Annotated[
    str | None, typer.Option(help="The context's owner; needed if several owners have this id.")
]


@app.command("list")
def list_contexts(
    *,
    owner: Annotated[str | None, typer.Option(help="Only of this owner.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="Go on where a page ended.")] = None,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """List contexts, newest first.

    For example:

        holdfast contexts list --owner ana
    """

    async def work() -> ContextPage:
        async with open_shared(tenant) as state:
            return await state.tasks.list_contexts(owner=owner, limit=limit, cursor=cursor)

    page = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(jsonable(page)))
        return
    if not page.contexts:
        filtered = owner is not None or cursor is not None or not limit
        typer.echo(none_there("contexts", tenant, filtered=filtered))
        return
    table = Table("context", "owner", "tasks", "created", box=None, header_style="dim")
    for one in page.contexts:
        table.add_row(escape(one.id), escape(one.owner), str(one.tasks), ago(one.created_at))
    _out.print(table)
    if page.next_cursor:
        _out.print(f"[dim]more: --cursor {page.next_cursor}[/]", soft_wrap=True)


@app.command()
def show(
    session_id: ContextId,
    *,
    owner: Owner = None,
    last: Annotated[int | None, typer.Option(min=0, help="Only so many messages.")] = None,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Show the tasks of a context, and the messages of all of them, in order.

    For example:

        holdfast contexts show c1 --last 20
    """

    async def work() -> tuple[ContextRecord | None, list[TaskRecord]]:
        async with open_shared(tenant) as state:
            whose = await _owner(state.tasks, session_id, owner)
            if whose is None:
                return None, []
            page = await state.tasks.list(owner=whose, session_id=session_id, limit=100)
            found = await state.tasks.get_context(session_id, owner=whose, messages_limit=last)
            return found, page.tasks

    context, tasks = asyncio.run(work())
    if context is None:
        raise NotFoundError(
            "context",
            session_id,
            f"no context {session_id!r} of this tenant: `holdfast contexts list` shows them",
        )
    if as_json:
        typer.echo(json.dumps({**jsonable(context), "tasks": jsonable(tasks)}))
        return
    owned = f", owner {escape(context.owner)}" if context.owner else ""
    _out.print(f"[bold]{escape(context.id)}[/]{owned}, {context.tasks} tasks")
    for task in reversed(tasks):
        agent = escape(str(task.agent))
        _out.print(f"  {escape(task.id)} {agent} {state_mark(task.state)}", soft_wrap=True)
    for message in context.messages:
        _out.print(f"\n[bold]{message.role}[/] [dim]{clock(message.created_at)}[/]")
        _out.print(escape(message.text))


@app.command()
def clear(
    session_id: ContextId,
    *,
    owner: Owner = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    tenant: Tenant = "",
    as_json: Json = False,
) -> None:
    """Delete a context with its tasks, their messages, artifacts and files. It cannot be undone.

    Running tasks are stopped: their workers lose the lease. If the command crashes in the middle,
    run it again to finish.

    For example:

        holdfast contexts clear c1 --yes
    """
    if as_json and not yes:
        raise ConfigError("not a terminal: pass --yes to confirm (this deletes the tasks)")

    async def work() -> int:
        async with open_shared(tenant) as state:
            # A context without tasks may still have files, if an earlier clear was interrupted.
            whose = await _owner(state.tasks, session_id, owner) or ""
            return await clear_context(state, session_id, owner=whose)

    if not yes:
        typer.confirm(f"Remove the context {session_id!r} with all its tasks?", abort=True)
    removed = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps({"context": session_id, "tasks_removed": removed}))
    elif removed:
        _out.print(f"removed {removed} tasks")
    else:
        _out.print(f"there was no context {escape(repr(session_id))} with tasks to remove")


@app.command()
def assign(
    session_id: ContextId,
    *,
    owner: Annotated[str, typer.Option(help="The owner to assign it to.")],
    new_id: Annotated[
        str | None,
        typer.Option("--as", help="A new session id, if the owner has this one already."),
    ] = None,
    tenant: Tenant = "",
) -> None:
    """Assign to one owner the old session of a context that several owners shared.

    Earlier versions did not separate owners; since the upgrade no owner can read such a session.
    `holdfast doctor` lists these contexts.

    For example:

        holdfast contexts assign c1 --owner ana
    """

    async def work() -> None:
        async with open_shared(tenant) as state:
            await state.ops.assign_context(session_id, owner=owner, new_id=new_id)

    asyncio.run(work())
    _out.print(f"{escape(new_id or session_id)} is a session of {escape(owner)} now")


async def _owner(ledger: TaskLedger, session_id: str, given: str | None) -> str | None:
    """Return the owner of a context: the given one, or the only owner that has this context."""
    if given is not None:
        return given
    page = await ledger.list(owner=ANY_OWNER, session_id=session_id, limit=100)
    owners = {task.owner for task in page.tasks}
    if len(owners) > 1:
        names = ", ".join(repr(one) for one in sorted(owners))
        raise InvalidInputError(
            "owner", f"context {session_id!r} has several owners: {names}: pass --owner"
        )
    return owners.pop() if owners else None
