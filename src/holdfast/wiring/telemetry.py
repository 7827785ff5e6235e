"""Puts OpenTelemetry around the stores of an opened ``State``; without it nothing is changed."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.runtime.runner import Runner
from holdfast.telemetry.options import Telemetry
from holdfast.values.errors import ConfigError, InvalidInputError, MissingExtraError
from holdfast.wiring.settings import Settings
from holdfast.wiring.stores import Stores

if TYPE_CHECKING:
    from holdfast.telemetry.instruments import Instruments
    from holdfast.wiring.connections import Connections


def telemetry_of(given: object, settings: Settings) -> Telemetry | None:
    """Return the telemetry passed to ``open``, or that of the settings; ``None`` if it is off.

    >>> telemetry_of(None, Settings()) is None
    True
    """
    if given is None:
        if settings.otel_tenant and not settings.otel:
            raise ConfigError("HOLDFAST_OTEL_TENANT needs HOLDFAST_OTEL=1: set both, or none")
        return Telemetry(show_tenant=settings.otel_tenant) if settings.otel else None
    if not isinstance(given, Telemetry):
        raise InvalidInputError(
            "telemetry", f"must be a holdfast.telemetry.Telemetry, not {type(given).__name__}"
        )
    return given


@contextmanager
def _extra() -> Iterator[None]:
    """Turn the error of a missing package into one that names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("holdfast"):
            raise
        raise MissingExtraError("telemetry", "otel") from None


def span_ids() -> logging.Filter:
    """Return a filter that adds the ids of the current span to log records.

    ::

        handler.addFilter(span_ids())
    """
    with _extra():
        from holdfast.telemetry.logs import SpanIds  # noqa: PLC0415

    return SpanIds()


def tracing_of(options: Telemetry | None) -> Tracing | None:
    """Return the object that traces a state; ``None`` if telemetry is off.

    >>> tracing_of(None) is None
    True
    """
    return None if options is None else Tracing(options)


class Tracing:
    """Traces the stores, handlers and requests of an opened ``State``.

    ::

        connections.tracing = Tracing(Telemetry())
    """

    def __init__(self, options: Telemetry) -> None:
        # Imported here: OpenTelemetry is a separate extra, and off unless it is asked for.
        with _extra():
            from holdfast.telemetry import calls, http, runs  # noqa: PLC0415
            from holdfast.telemetry.instruments import Instruments  # noqa: PLC0415
        self.instruments: Instruments = Instruments(options)
        self._calls, self._http = calls, http
        self.runner: type[Runner] = runs.traced_runner(self.instruments)

    def watch(self, connections: Connections) -> None:
        """Count the round trips of the connected engines."""
        for one in connections.connected:
            if one.watch is not None:
                one.watch(self._calls.count_round_trip)

    def stores(self, stores: Stores, engines: Mapping[str, str], tenant: str) -> Stores:
        """Return the stores with a span for each call."""
        found: dict[str, Any] = {}
        for slot in dataclasses.fields(stores):
            store = getattr(stores, slot.name)
            if store is None:
                continue
            engine = engines.get(slot.name) or engines.get("episodes", "")
            tracer = self._calls.CallTracer(self.instruments, slot.name, engine, tenant)
            if slot.name == "channel":
                found[slot.name] = self._calls.traced_channels(store, tracer)
                continue
            found[slot.name] = traced = self._calls.traced(store, tracer)
            if slot.name == "tasks":
                own = vars(traced)
                own["_storage"] = self._calls.TracedTasks(own["_storage"])
        return dataclasses.replace(stores, **found)

    def grpc(self, methods: Collection[str]) -> Any:
        """Return a gRPC interceptor with a span for each call; needs the extra ``grpc``."""
        from holdfast.telemetry.grpc import TracedCalls  # noqa: PLC0415 - a separate extra

        return TracedCalls(self.instruments, methods)

    def http(self, app: Any) -> Any:
        """Return an ASGI app with a span for each request."""
        return self._http.traced_http(app, self.instruments)
