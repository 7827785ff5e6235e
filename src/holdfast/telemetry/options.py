"""How a ``State`` reports to OpenTelemetry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Turns on spans and metrics of OpenTelemetry for a ``State``: ``open(telemetry=Telemetry())``.

    Without providers the global ones are used. No span has content or the text of an error. Spans
    of runs have the agent, the task, the worker and the conversation. The tenant is in none unless
    ``show_tenant`` adds it as ``db.namespace``. It needs ``holdfast[otel]``.

    >>> Telemetry().show_tenant
    False
    """

    tracer_provider: Any = None
    """An ``opentelemetry.trace.TracerProvider``; ``None`` is the global one."""

    meter_provider: Any = None
    """An ``opentelemetry.metrics.MeterProvider``; ``None`` is the global one."""

    show_tenant: bool = False
