"""``holdfast worker``: runs the handlers of an app until a signal stops it."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from contextlib import ExitStack
from types import FrameType
from typing import Annotated

import typer

from holdfast.cli.load_app import load_app
from holdfast.cli.logs import start_logs
from holdfast.cli.monitoring import MetricsHost, MetricsPort, Monitoring
from holdfast.cli.open_state import open_shared
from holdfast.cli.worker_screen import WorkerScreen
from holdfast.runtime.app import App
from holdfast.runtime.background import Runs
from holdfast.runtime.indexing import Indexing
from holdfast.runtime.runner import Ending
from holdfast.runtime.worker import Worker
from holdfast.values.tasks.records import LEASE_SECONDS

_log = logging.getLogger("holdfast.worker")
STOPPED_AT_ONCE = 128
"""The exit code after a second signal is this plus the signal's number."""


def worker(
    app: Annotated[
        str, typer.Argument(help="The app, as module:app; the current folder is searched too.")
    ],
    *,
    concurrency: Annotated[int, typer.Option(min=1, help="How many tasks run at once.")] = 10,
    tenant: Annotated[
        list[str] | None,
        typer.Option(help="Serve only this tenant; may be given again. Without it: all of them."),
    ] = None,
    name: Annotated[
        str, typer.Option(help="What the timeline calls this worker; host and process by default.")
    ] = "",
    lease_seconds: Annotated[
        float,
        typer.Option(
            min=0.3,
            help="How long a lease lasts: tasks of a dead worker continue after it, "
            "up to --recovery-seconds later.",
        ),
    ] = LEASE_SECONDS,
    recovery_seconds: Annotated[
        float, typer.Option(min=0.05, help="How often it looks for tasks of dead workers.")
    ] = 5.0,
    poll_seconds: Annotated[
        float, typer.Option(min=0.01, help="How often it looks for tasks without a notification.")
    ] = 1.0,
    grace_seconds: Annotated[
        float, typer.Option(min=0.0, help="How long handlers may run on after SIGTERM.")
    ] = 30.0,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
    log_json: Annotated[
        bool, typer.Option("--log-json", help="Log JSON lines, and draw nothing.")
    ] = False,
) -> None:
    """Run the handlers of an app: claim tasks, run them, recover tasks of workers that died.

    You can start any number of workers, on any number of machines, with one Postgres
    (DATABASE_URL); or on one machine without any setup (embedded Postgres in .holdfast).

    On SIGTERM or Ctrl-C it drains: it claims no more tasks, waits the grace time for handlers to
    end, releases the remaining tasks without counting an attempt, and ends with exit code 0. A
    second signal stops it at once; other workers continue its tasks after their leases expire.

    For example:

        holdfast worker my_agents:app --concurrency 20

        holdfast worker my_agents:app --tenant acme --log-json --metrics-port 9464
    """
    found = load_app(app)
    monitoring = Monitoring(host=metrics_host, port=metrics_port)
    watched = sys.stdout.isatty() and not log_json
    start_logs(as_json=log_json, level=logging.WARNING if watched else logging.INFO)

    async def work() -> int:
        async with open_shared(creates=True) as state:
            with ExitStack() as stack:
                screen = WorkerScreen(found.name, concurrency)

                def watch(ending: Ending) -> None:
                    screen.add(ending)
                    monitoring.watch(ending)

                made = Worker(
                    found,
                    state,
                    name=name,
                    concurrency=concurrency,
                    tenants=tenant or None,
                    lease_seconds=lease_seconds,
                    recovery_seconds=recovery_seconds,
                    poll_seconds=poll_seconds,
                    grace_seconds=grace_seconds,
                    watch=watch,
                )
                if watched:
                    stack.enter_context(screen.shown(made))
                runs = Indexing(state.ops.index_pending, runs=made)
                return await run_until_signal(
                    monitoring.around(
                        runs,
                        state,
                        running=lambda: made.running,
                        agents=[str(agent) for agent in found.agents],
                    )
                )

    _say_ready(found)
    raise typer.Exit(asyncio.run(work()))


async def run_until_signal(worker: Runs) -> int:
    """Run a worker until a signal. Returns the exit code.

    The first signal drains it, a second one stops it at once.

    ::

        raise SystemExit(await run_until_signal(worker))
    """
    loop = asyncio.get_running_loop()
    run = asyncio.create_task(worker.run())
    received: list[int] = []

    def heed(number: int, _frame: FrameType | None) -> None:
        # A plain signal handler, not one of the event loop: it is called even while a task's
        # handler blocks the loop.
        received.append(number)
        if len(received) == 1:
            loop.call_soon_threadsafe(worker.stop)
            return
        signal.signal(number, signal.SIG_DFL)
        loop.call_soon_threadsafe(run.cancel)

    before = {one: signal.signal(one, heed) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        await run
    except asyncio.CancelledError:
        if len(received) < 2:
            raise
        _log.warning("stopped at once: other workers continue its tasks after their leases expire")
        return STOPPED_AT_ONCE + received[-1]
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    return 0


def _say_ready(app: App) -> None:
    names = ", ".join(str(agent) for agent in app.agents) or "no agent"
    _log.info("app %s: handlers for %s", app.name, names)
