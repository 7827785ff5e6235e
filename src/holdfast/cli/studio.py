"""``holdfast studio``: the state of your agents in a browser, on this machine."""

from __future__ import annotations

import asyncio
import dataclasses
import webbrowser
from contextlib import nullcontext
from typing import Annotated

import typer

from holdfast.cli.logs import start_logs
from holdfast.cli.open_state import open_shared
from holdfast.cli.options import Tenant
from holdfast.cli.worker import run_until_signal
from holdfast.values.errors import MissingExtraError
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings

DEMO_FOLDER = "./.holdfast-demo"


def studio(
    *,
    tenant: Tenant = "",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 is any that is free.")
    ] = 8620,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show everything, change nothing.")
    ] = False,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Show a small world in the folder .holdfast-demo instead."),
    ] = False,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the link in a browser.")
    ] = True,
) -> None:
    """Open Studio in a browser: tasks, questions, boards, sessions, recall, facts, graph, health.

    It listens on this machine only, and prints a link that works once, within five minutes; run
    the command again for another. Anyone who has the link can read and change everything in the
    tenant.

    For example:

        holdfast studio

        holdfast studio --demo

        holdfast studio --read-only --no-browser --port 0
    """
    try:
        # Imported here: Studio is a separate extra.
        from holdfast.studio.demo_agents import at_work  # noqa: PLC0415
        from holdfast.studio.demo_world import fill, is_filled  # noqa: PLC0415
        from holdfast.studio.server import StudioServer  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("holdfast"):
            raise
        raise MissingExtraError("Studio", "studio") from None
    start_logs(as_json=False)

    async def work() -> int:
        opening = (
            open_state(DEMO_FOLDER, settings=_demo_settings())
            if demo
            else open_shared(tenant, creates=True)
        )
        async with opening as state:
            if demo and not await is_filled(state):
                typer.echo(f"Filling {DEMO_FOLDER} with a small world …")
                await fill(state, progress=lambda what: typer.echo(f"  {what}"))
            server = StudioServer(state, port=port, read_only=read_only)
            link = server.link()
            typer.echo(f"Studio: {link}")
            typer.echo("The link works once, within five minutes. Ctrl-C ends Studio.")
            if browser:
                webbrowser.open(link)
            # Tasks of the small world go on when somebody answers them.
            async with at_work(state) if demo and not read_only else nullcontext():
                return await run_until_signal(server)

    raise typer.Exit(asyncio.run(work()))


def _demo_settings() -> Settings:
    """Return settings that keep versions of working states, so that Studio can show them."""
    return dataclasses.replace(Settings.from_environment(), state_versions=100)
