"""``--metrics-port`` of the commands that serve no app."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from holdfast.runtime.background import Runs
from holdfast.runtime.runner import Ending
from holdfast.values.errors import MissingExtraError
from holdfast.wiring.state import State

if TYPE_CHECKING:
    from holdfast.server.metrics import Metrics

MetricsPort: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65535,
        help="Serve /metrics, /health/live and /health/ready on this port; 0 is any that is free.",
        show_default="none is served",
    ),
]
MetricsHost: TypeAlias = Annotated[
    str, typer.Option(help="The address of --metrics-port; it needs no API key.")
]


class Monitoring:
    """Metrics and health of a command; without a port nothing is counted or served.

    ::

        monitoring = Monitoring(host="127.0.0.1", port=9464)
        worker = Worker(app, state, watch=monitoring.watch)
        await run_until_signal(monitoring.around(worker, state))
    """

    def __init__(self, *, host: str, port: int | None) -> None:
        self._host = host
        self._port = port
        self._metrics: Metrics | None = None
        if port is None:
            return
        try:
            # Imported here: the HTTP server is a separate extra.
            from holdfast.server.metrics import Metrics  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("holdfast"):
                raise
            raise MissingExtraError("--metrics-port", "server") from None
        self._metrics = Metrics()

    def watch(self, ending: Ending) -> None:
        """Count a run of a handler."""
        if self._metrics is not None:
            self._metrics.count_run(ending)

    def around(
        self,
        runs: Runs,
        state: State,
        *,
        running: Callable[[], int] | None = None,
        agents: Sequence[str] | None = None,
    ) -> Runs:
        """Return a wrapper of ``runs`` that also serves metrics and health while it runs.

        ``running`` returns how many handlers run, and ``agents`` are the agents that have handlers.
        """
        if self._metrics is None or self._port is None:
            return runs
        from holdfast.server.monitoring import Monitored  # noqa: PLC0415 - the extra is there

        if running is not None:
            self._metrics.running.set_function(running)
        return Monitored(
            runs, state, self._metrics, host=self._host, port=self._port, agents=agents
        )
