"""Delivers push notifications: claims outbox entries, sends them, and records each outcome.

Any number of processes deliver; one process at a time claims an entry. If a process dies between
sending and recording, the entry is sent again. The ``Idempotency-Key`` header is the same each
time, so that a receiver can recognise repeats.

Every entry is delivered in a separate asyncio task with one deadline. Any error there is the
failure of that entry: it is recorded on the entry and affects no other delivery.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from contextlib import suppress
from functools import partial

import httpx
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToJson

from holdfast.server.addresses import AddressGuard, guarded_client
from holdfast.server.metrics import Metrics
from holdfast.server.options import ServiceOptions
from holdfast.server.push_request import check_push, delivery_headers, signature_headers
from holdfast.server.streams import Timeline
from holdfast.values.errors import HoldfastError, TimedOutError, UnavailableError
from holdfast.values.owners import ANY_OWNER
from holdfast.values.tasks.push import OutboxEntry
from holdfast.wiring.state import State

_log = logging.getLogger("holdfast.server.push")
LEASE_MARGIN_SECONDS = 45.0
"""How much longer a lease is than a delivery may take, so that no other process sends it too."""

_MOST_ERROR_CHARACTERS = 500


class Deliverer:
    """Delivers the push notifications of all tenants until ``stop`` is called.

    ::

        deliverer = Deliverer(state, timeline, guard, metrics=metrics, options=options)
        await deliverer.run()
    """

    def __init__(
        self,
        state: State,
        timeline: Timeline,
        guard: AddressGuard,
        *,
        metrics: Metrics,
        options: ServiceOptions,
        poll_seconds: float = 1.0,
    ) -> None:
        self._state = state
        self._timeline = timeline
        self._guard = guard
        self._metrics = metrics
        self._options = options
        self._poll_seconds = poll_seconds
        self._stopped = asyncio.Event()
        self._wake = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._by_tenant: Counter[str] = Counter()
        self._by_owner: Counter[tuple[str, str]] = Counter()
        self._last_tenant = ""

    def stop(self) -> None:
        """Finish the deliveries that have started, and start no more."""
        self._stopped.set()
        self._wake.set()

    async def run(self) -> None:
        """Deliver until ``stop`` is called."""
        async with guarded_client(self._guard, connections=self._options.push_at_once) as client:
            try:
                while not self._stopped.is_set():
                    self._wake.clear()
                    if not await self._claim_all(client):
                        with suppress(TimeoutError):
                            async with asyncio.timeout(self._poll_seconds):
                                await self._wake.wait()
                if self._running:
                    await asyncio.wait(self._running)
            finally:
                for one in self._running:
                    one.cancel()
                await asyncio.gather(*self._running, return_exceptions=True)
                self._guard.close()

    async def _claim_all(self, client: httpx.AsyncClient) -> int:
        """Start a delivery for each free slot. Returns how many were started."""
        try:
            due = await self._state.ops.work.tenants("deliveries")
        except Exception as error:  # noqa: BLE001 - the loop outlives whatever the database does
            _report("the outbox cannot be read", error)
            return 0
        # Begin after the tenant that was served last, so that no tenant takes all slots.
        after = [tenant for tenant in due if tenant > self._last_tenant]
        started = 0
        for tenant in [*after, *due[: len(due) - len(after)]]:
            free = min(
                self._options.push_at_once - len(self._running),
                self._options.push_per_tenant - self._by_tenant[tenant],
            )
            if free > 0 and not self._stopped.is_set():
                started += await self._claim(client, tenant, free)
                self._last_tenant = tenant
        return started

    async def _claim(self, client: httpx.AsyncClient, tenant: str, limit: int) -> int:
        """Start up to ``limit`` deliveries of a tenant. Returns how many were started."""
        lease = self._options.push_seconds + LEASE_MARGIN_SECONDS
        try:
            state = self._state.for_tenant(tenant)
            busy = {owner: n for (of, owner), n in self._by_owner.items() if of == tenant}
            entries = await state.tasks.claim_outbox(
                limit=limit,
                lease_seconds=lease,
                per_owner=self._options.push_per_owner,
                busy=busy,
            )
        except Exception as error:  # noqa: BLE001 - the other tenants are delivered all the same
            _report(f"the outbox of tenant {tenant!r} cannot be claimed", error)
            return 0
        for entry in entries:
            task = asyncio.create_task(self._deliver(client, state, entry))
            self._running.add(task)
            self._by_tenant[tenant] += 1
            self._by_owner[tenant, entry.owner] += 1
            task.add_done_callback(partial(self._ended, tenant, entry.owner))
        return len(entries)

    def _ended(self, tenant: str, owner: str, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._by_tenant[tenant] -= 1
        self._by_owner[tenant, owner] -= 1
        # Unary plus drops the entries that are zero.
        self._by_tenant, self._by_owner = +self._by_tenant, +self._by_owner
        self._wake.set()

    async def _deliver(self, client: httpx.AsyncClient, state: State, entry: OutboxEntry) -> None:
        """Deliver one entry and record the outcome; raises nothing."""
        try:
            try:
                async with asyncio.timeout(self._options.push_seconds):
                    problem = await self._send(client, state, entry)
            except (UnavailableError, TimedOutError):
                # The database is down: record no failure of the entry, let its lease expire.
                raise
            except TimeoutError:
                problem = f"not delivered within {self._options.push_seconds:g} seconds"
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this entry's failure
                problem = f"{type(error).__name__}: {error}"
            if problem:
                self._metrics.deliveries.labels("failed").inc()
                await state.tasks.mark_failed(entry, _storable(problem))
            else:
                await state.tasks.mark_delivered(entry)
        except Exception as error:  # noqa: BLE001 - the entry is claimed again after its lease
            _report(f"the end of delivery {entry.id!r} was not recorded", error)

    async def _send(self, client: httpx.AsyncClient, state: State, entry: OutboxEntry) -> str:
        """Send one entry. Returns the receiver's error status, or ``""`` for success."""
        task = await state.tasks.get(
            entry.event.task_id, owner=ANY_OWNER, messages_limit=0, artifacts=False
        )
        news = None if task is None else await self._timeline.news(state, task, entry.event)
        if news is None:
            # Nothing to send: the client's own message, or a task that was deleted.
            return ""
        config = check_push(entry.config, self._guard)
        body = MessageToJson(to_stream_response(news.update), indent=None).encode()
        request = client.build_request(
            "POST",
            config.url,
            content=body,
            headers=delivery_headers(config)
            | signature_headers(config, body, at=int(time.time()))
            | {"Idempotency-Key": f"{entry.event.task_id}:{entry.event.seq}"},
        )
        # Only the status matters: the response body is never read, however long it is.
        response = await client.send(request, stream=True)
        await response.aclose()
        if not response.is_success:
            return f"HTTP {response.status_code}"
        self._metrics.deliveries.labels("delivered").inc()
        return ""


def _report(what: str, error: Exception) -> None:
    """Log a failure, with a traceback if the error is not an expected one."""
    expected = isinstance(error, HoldfastError)
    _log.log(
        logging.WARNING if expected else logging.ERROR,
        "%s: %s: %s",
        *(what, type(error).__name__, error),
        exc_info=None if expected else error,
    )


def _storable(problem: str) -> str:
    """Return a failure's text, shortened and without lone surrogates, which cannot be stored."""
    return problem[:_MOST_ERROR_CHARACTERS].encode("utf-8", "replace").decode()
