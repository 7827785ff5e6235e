"""``holdfast db``: the schema and its maintenance."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from holdfast.cli.distribute import distribute
from holdfast.values.errors import ConfigError
from holdfast.values.retention import Retention
from holdfast.wiring.admin import Administration
from holdfast.wiring.secret_files import with_secret_files

app = typer.Typer(help="Look after the database schema.", no_args_is_help=True)
app.command()(distribute)
_out = Console()

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@asynccontextmanager
async def _opened() -> AsyncIterator[Administration]:
    admin = await Administration.open()
    try:
        yield admin
    finally:
        await admin.aclose()


@app.command()
def status(*, as_json: Json = False) -> None:
    """Show which migrations are applied and which are pending.

    Exit code 0 if the schema matches this version, 1 if not.
    """

    async def work() -> dict[str, Any]:
        async with _opened() as admin:
            found = await admin.status()
            return {
                "database": admin.label,
                "have": found.have,
                "want": found.want,
                "pending": [one.label for one in found.pending],
                "tampered": list(found.tampered),
            }

    facts = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        table = Table(title=facts["database"], title_justify="left", show_header=False)
        table.add_row("applied", str(facts["have"]))
        table.add_row("this version needs", str(facts["want"]))
        table.add_row("pending", "\n".join(facts["pending"]) or "none")
        table.add_row("changed after they were applied", "\n".join(facts["tampered"]) or "none")
        _out.print(table)
        if facts["pending"]:
            _out.print("Run [bold]holdfast db migrate[/bold].")
    current = facts["have"] == facts["want"] and not facts["pending"]
    raise typer.Exit(code=0 if current and not facts["tampered"] else 1)


@app.command()
def migrate(*, as_json: Json = False) -> None:
    """Apply the pending migrations. It is safe to run twice, and in several processes at once."""

    async def work() -> list[str]:
        async with _opened() as admin:
            return [one.label for one in await admin.migrate()]

    applied = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps({"applied": applied}))
        return
    for name in applied:
        _out.print(f"applied {name}")
    if not applied:
        _out.print("nothing to do: the schema is up to date")


@app.command()
def login(
    name: Annotated[str, typer.Argument(help="The name of the login role.")],
    *,
    kinds: Annotated[
        list[str],
        typer.Option(
            "--for",
            help="What its processes do: app, worker, consolidator, reader. Repeat it for several.",
        ),
    ],
) -> None:
    """Create a login role that has the rights of its processes, or change its password.

    Run it as a superuser or as a role that may create roles. A service that runs a worker too:
    `holdfast db login my_service --for worker`. Its password is in HOLDFAST_LOGIN_PASSWORD,
    or in the file that HOLDFAST_LOGIN_PASSWORD_FILE names.
    """

    async def work() -> bool:
        async with _opened() as admin:
            return await admin.make_login(name, password, kinds)

    password = with_secret_files(os.environ).get("HOLDFAST_LOGIN_PASSWORD", "")
    if not password:
        raise ConfigError(
            f"set HOLDFAST_LOGIN_PASSWORD to the password of {name}, or "
            "HOLDFAST_LOGIN_PASSWORD_FILE to a file with it"
        )
    new = asyncio.run(work())
    _out.print(f"{'created' if new else 'changed'} the login {name}, for {', '.join(kinds)}")


@app.command()
def sql(
    *,
    role: Annotated[str, typer.Option(help="Also print the grants that this role needs.")] = "",
) -> None:
    """Print the SQL of all migrations, for a review or for your own migration tool."""
    for text in Administration.sql(role=role):
        typer.echo(text)


@app.command()
def check(*, as_json: Json = False) -> None:
    """Check the schema, the server's durability settings and the privileges of the current role.

    Exit code 0 if there is no problem, 1 with the list of problems.
    """

    async def work() -> list[str]:
        async with _opened() as admin:
            return await admin.problems()

    problems = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps({"problems": problems}))
    elif problems:
        for problem in problems:
            _out.print(f"[red]✗[/red] {problem}")
    else:
        _out.print("[green]✓[/green] no problems found")
    raise typer.Exit(code=1 if problems else 0)


@app.command()
def maintain(
    *,
    scrub: Annotated[
        bool,
        typer.Option(
            help="Also rewrite all files, so that no bytes of deleted data stay. Each table is "
            "locked meanwhile. Needs a superuser."
        ),
    ] = False,
    retain: Annotated[
        list[str] | None,
        typer.Option(
            help="Also delete whole sessions or ended tasks that are older, such as sessions=90d "
            "or tasks=30d; h, d and w are hours, days and weeks. May be given for both."
        ),
    ] = None,
    tenant: Annotated[
        str, typer.Option(help="With --retain: only of this tenant; unless given, of all.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --retain: only count what would be deleted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete expired data, index queued documents, build missing vector indexes.

    It is safe to run at any time, while agents work. Run it from cron, about once an hour.
    Run it with --scrub after an erasure, to remove the deleted bytes from the files too.

    With --retain, the age of a session is that of its newest event or working state, and the age of
    a task counts from its end. Children of a task that has not ended are kept. With --dry-run no
    other job runs.

    For example:

        holdfast db maintain

        holdfast db maintain --retain sessions=90d --retain tasks=30d --dry-run
    """
    policy = Retention.parse(retain or [], tenant=tenant or None, dry_run=dry_run)
    if (tenant or dry_run) and not retain:
        raise ConfigError("--tenant and --dry-run are for --retain: pass --retain sessions=90d")

    async def work() -> dict[str, int]:
        async with _opened() as admin:
            done: dict[str, int] = {}
            with Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                console=_out,
                disable=as_json or not _out.is_terminal,
            ) as progress:
                jobs = admin.retention_jobs(policy)
                if not dry_run:
                    jobs |= admin.jobs() | (admin.scrub_jobs() if scrub else {})
                bar = progress.add_task("maintenance", total=len(jobs))
                for name, job in jobs.items():
                    progress.update(bar, description=name)
                    done[name] = await job()
                    progress.advance(bar)
            return done

    done = asyncio.run(work())
    if as_json:
        typer.echo(json.dumps(done))
        return
    table = Table("job", "done")
    for name, count in done.items():
        table.add_row(name, str(count))
    _out.print(table)
