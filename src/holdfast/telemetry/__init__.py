"""OpenTelemetry: spans and durations of calls, and one trace over all processes of a task."""

from holdfast.telemetry.options import Telemetry

__all__ = ["Telemetry"]
