"""News on their way to clients: taken from the outbox, sent, and taken out when they have arrived.

Any number of processes deliver; an entry is claimed by one of them at a time. Who dies between
sending and noting it leaves the entry to be sent again, so a receiver tells repeats by the
``Idempotency-Key`` header, which is the same each time.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import httpx
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToJson

from holdfast.kernel.core.errors import HoldfastError, InvalidInputError
from holdfast.kernel.storage.ledger_push import OutboxEntry, PushConfig
from holdfast.server.addresses import AddressGuard, guarded_client
from holdfast.server.metrics import Metrics
from holdfast.server.streams import Timeline
from holdfast.wiring.state import State

_log = logging.getLogger("holdfast.server.push")
SEND_SECONDS = 15.0
LEASE_SECONDS = 60.0
"""Longer than a send can take, so that nobody sends the same beside it."""

BATCH = 20


class Deliverer:
    """Delivers the news of all tenants until it is stopped.

    ::

        deliverer = Deliverer(state, timeline, guard, metrics=metrics)
        await deliverer.run()
    """

    def __init__(
        self,
        state: State,
        timeline: Timeline,
        guard: AddressGuard,
        *,
        metrics: Metrics,
        poll_seconds: float = 1.0,
    ) -> None:
        self._state = state
        self._timeline = timeline
        self._guard = guard
        self._metrics = metrics
        self._poll_seconds = poll_seconds
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Finish what is being sent, and begin nothing more."""
        self._stopped.set()

    async def run(self) -> None:
        """Deliver until ``stop`` is called."""
        async with guarded_client(self._guard, seconds=SEND_SECONDS) as client:
            while not self._stopped.is_set():
                try:
                    sent = await self._round(client)
                except HoldfastError as error:
                    _log.warning("news cannot be delivered for now: %s", error)
                    sent = 0
                if not sent:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._poll_seconds):
                            await self._stopped.wait()

    async def _round(self, client: httpx.AsyncClient) -> int:
        """Deliver what is due now; how many entries that was."""
        count = 0
        for tenant in await self._state.work.tenants("deliveries"):
            if self._stopped.is_set():
                break
            place = self._state.for_tenant(tenant)
            entries = await place.tasks.claim_outbox(limit=BATCH, lease_seconds=LEASE_SECONDS)
            await asyncio.gather(*(self._deliver(client, place, entry) for entry in entries))
            count += len(entries)
        return count

    async def _deliver(self, client: httpx.AsyncClient, place: State, entry: OutboxEntry) -> None:
        try:
            problem = await self._send(client, place, entry)
            if problem:
                self._metrics.deliveries.labels("failed").inc()
                await place.tasks.mark_failed(entry, problem)
            else:
                await place.tasks.mark_delivered(entry)
        except HoldfastError as error:
            # Its lease ends, and somebody sends it again.
            _log.warning("the outbox did not take a report: %s", error)

    async def _send(self, client: httpx.AsyncClient, place: State, entry: OutboxEntry) -> str:
        """Send one entry; what went wrong, or nothing."""
        task = await place.tasks.get(
            entry.event.task_id, owner=None, history_length=0, artifacts=False
        )
        news = None if task is None else await self._timeline.news(place, task, entry.event)
        if news is None:
            # Nothing that a client is told of: its own message, or a task that is gone.
            return ""
        try:
            self._guard.check_url(entry.config.url)
            request = client.build_request(
                "POST",
                entry.config.url,
                content=MessageToJson(to_stream_response(news.update), indent=None),
                headers=headers_of(entry.config)
                | {"Idempotency-Key": f"{entry.event.task_id}:{entry.event.seq}"},
            )
            # Only the status counts: whatever else is answered is not read.
            response = await client.send(request, stream=True)
            await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL, InvalidInputError) as error:
            return f"{type(error).__name__}: {error}"[:500]
        if not response.is_success:
            return f"HTTP {response.status_code}"
        self._metrics.deliveries.labels("delivered").inc()
        return ""


def headers_of(config: PushConfig) -> dict[str, str]:
    """What proves to the receiver who sends.

    >>> headers_of(PushConfig("p1", "https://example.org", token="t"))["X-A2A-Notification-Token"]
    't'
    """
    headers = {"Content-Type": "application/a2a+json", "User-Agent": "holdfast"}
    if config.token:
        headers["X-A2A-Notification-Token"] = config.token
    scheme = config.authentication.get("scheme")
    if scheme:
        credentials = config.authentication.get("credentials", "")
        headers["Authorization"] = f"{scheme} {credentials}".strip()
    return headers


def check_push(config: PushConfig, guard: AddressGuard) -> PushConfig:
    """Refuse a config that nothing could ever be sent to.

    >>> check_push(PushConfig("p1", "https://example.org"), AddressGuard(allow_private=False)).id
    'p1'
    """
    guard.check_url(config.url)
    for value in headers_of(config).values():
        if not (value.isascii() and value.isprintable()):
            raise InvalidInputError("push", "token and authentication must be printable ASCII")
    return config
