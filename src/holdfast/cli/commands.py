"""The root command with all groups of commands."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer
from dotenv import load_dotenv

from holdfast.cli import (
    archives,
    backup,
    bench,
    chaos,
    consolidate,
    contexts,
    db,
    dead_letters,
    demo,
    doctor,
    embed,
    erase,
    graph,
    index,
    keys,
    mcp,
    schedules,
    serve,
    studio,
    tasks,
    worker,
)

app = typer.Typer(
    name="holdfast",
    help="The durable state and memory layer for AI agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app, name="bench")
app.add_typer(contexts.app, name="contexts")
app.add_typer(db.app, name="db")
app.add_typer(dead_letters.app, name="dead-letters")
app.add_typer(embed.app, name="embed")
app.add_typer(erase.app, name="erase")
app.add_typer(graph.app, name="graph")
app.add_typer(keys.app, name="keys")
app.add_typer(schedules.app, name="schedules")
app.add_typer(tasks.app, name="tasks")
app.command()(consolidate.consolidate)
app.command()(archives.copy)
app.command()(backup.backup)
app.command()(backup.restore)
app.command()(archives.export)
app.command(name="import")(archives.import_)
app.command()(demo.demo)
app.command()(chaos.chaos)
app.command()(doctor.doctor)
app.command()(index.index)
app.command()(mcp.mcp)
app.command()(serve.serve)
app.command()(studio.studio)
app.command()(worker.worker)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {version('holdfast')}")
        raise typer.Exit


@app.callback()
def configure(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Show the version, and end."
        ),
    ] = False,
) -> None:
    """Read the environment, and a `.env` file in the current folder if there is one.

    Without STORAGE_TYPE and DATABASE_URL, commands use the embedded Postgres in `.holdfast` (or
    HOLDFAST_DIR).
    """
    load_dotenv(".env")
