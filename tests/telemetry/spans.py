"""Spans of a test: kept in memory, or received from other processes over OTLP."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdfast.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Seen:
    """A span as a collector gets it."""

    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    process: str
    start: int
    end: int
    error: bool


class Kept:
    """Telemetry of one process, kept in memory."""

    def __init__(self, *, show_tenant: bool = False) -> None:
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self.tracer = provider.get_tracer("test")
        self.telemetry = Telemetry(provider, MeterProvider([self._reader]), show_tenant)

    @property
    def spans(self) -> list[Any]:
        """The spans that were ended, in that order."""
        return list(self._spans.get_finished_spans())

    async def ended(self) -> list[Any]:
        """The same; calls that have returned are ended in the next turn of the event loop."""
        await asyncio.sleep(0)
        return self.spans

    def clear(self) -> None:
        self._spans.clear()

    async def durations(self) -> list[dict[str, Any]]:
        """The attributes of every recorded duration."""
        await asyncio.sleep(0)
        data: Any = self._reader.get_metrics_data()
        return [
            dict(point.attributes)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == "db.client.operation.duration"
            for point in metric.data.data_points
        ]


@dataclass(slots=True)
class Receiver:
    """A collector on loopback: takes OTLP over HTTP, and keeps the spans."""

    spans: list[Seen] = field(default_factory=list)
    url: str = ""

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            names = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [_seen(span, names["service.instance.id"]) for span in scope.spans]


def _seen(span: Any, process: str) -> Seen:
    return Seen(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        {one.key: _value(one.value) for one in span.attributes},
        process,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        error=span.status.code == span.status.STATUS_CODE_ERROR,
    )


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A collector that runs until the block ends."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            receiver.take(body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()

        def log_message(self, *_args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
