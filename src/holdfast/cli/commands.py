"""The root command with all groups of commands."""

from __future__ import annotations

import inspect
from importlib.metadata import version
from typing import Annotated, Any

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
    help="The durable state and memory layer for AI agents.\n\n"
    "Try `holdfast demo`. Commands use DATABASE_URL; without it, the embedded Postgres in "
    "the folder `.holdfast` or HOLDFAST_DIR. `holdfast doctor` shows which.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_START, _RUN, _LOOK = "Start here", "Run agents", "Look and act"
_DATA, _KEEP, _PROVE = "Move and erase data", "Maintain", "Measure and break"
# In the order of the help.
app.command(rich_help_panel=_START)(demo.demo)
app.command(rich_help_panel=_START)(studio.studio)
app.command(rich_help_panel=_START)(doctor.doctor)
app.command(rich_help_panel=_RUN)(worker.worker)
app.command(rich_help_panel=_RUN)(serve.serve)
app.command(rich_help_panel=_RUN)(mcp.mcp)
app.add_typer(tasks.app, name="tasks", rich_help_panel=_LOOK)
app.add_typer(schedules.app, name="schedules", rich_help_panel=_LOOK)
app.add_typer(contexts.app, name="contexts", rich_help_panel=_LOOK)
app.add_typer(dead_letters.app, name="dead-letters", rich_help_panel=_LOOK)
app.command(rich_help_panel=_DATA)(archives.export)
app.command(name="import", rich_help_panel=_DATA)(archives.import_)
app.command(rich_help_panel=_DATA)(archives.copy)
app.command(rich_help_panel=_DATA)(backup.backup)
app.command(rich_help_panel=_DATA)(backup.restore)
app.add_typer(erase.app, name="erase", rich_help_panel=_DATA)
app.add_typer(db.app, name="db", rich_help_panel=_KEEP)
app.add_typer(keys.app, name="keys", rich_help_panel=_KEEP)
app.command(rich_help_panel=_KEEP)(consolidate.consolidate)
app.command(rich_help_panel=_KEEP)(index.index)
app.add_typer(embed.app, name="embed", rich_help_panel=_KEEP)
app.add_typer(graph.app, name="graph", rich_help_panel=_KEEP)
app.add_typer(bench.app, name="bench", rich_help_panel=_PROVE)
app.command(rich_help_panel=_PROVE)(chaos.chaos)


def command() -> Any:
    """Return the command, with helps that fill any width: Typer keeps line ends of docstrings.

    ::

        command()()
    """
    made = typer.main.get_command(app)
    _fill_helps(made)
    return made


def _fill_helps(made: Any) -> None:
    made.help = _without_line_ends(made.help or "")
    for inner in getattr(made, "commands", {}).values():
        _fill_helps(inner)


def _without_line_ends(text: str) -> str:
    paragraphs = inspect.cleandoc(text).split("\n\n")
    # An example is indented, and an entry of a list may be.
    kept = ("\n ", "\n- ")
    return "\n\n".join(
        one if any(begin in f"\n{one}" for begin in kept) else one.replace("\n", " ")
        for one in paragraphs
    )


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
