"""Limits per API key: concurrent requests, open streams, requests per second.

Each process has its own counts: behind a load balancer every instance counts separately.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.server.options import ServiceOptions

RETRY_SECONDS = 1.0
_MOST_IDLE = 10_000


class TooManyRequestsError(Exception):
    """Raised if a key has reached one of its limits; nothing was done.

    >>> TooManyRequestsError("too many streams", retry_after_seconds=2.0).retry_after_seconds
    2.0
    """

    def __init__(self, message: str, *, retry_after_seconds: float = RETRY_SECONDS) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message)


@dataclass(slots=True)
class _Use:
    """The current use of a key; ``tokens`` are the requests that it may send at once."""

    tokens: float
    filled_at: float
    requests: int = 0
    streams: int = 0


class RequestSlot:
    """A request that counts until it is released; releasing it again has no effect."""

    def __init__(self, release: Callable[[], None]) -> None:
        self._release = release
        self._held = True

    def release(self) -> None:
        """Stop counting the request: it has been answered, or has become a stream."""
        if self._held:
            self._held = False
            self._release()


class KeyLimits:
    """Counts requests and streams per key; callers without a key are not limited here.

    >>> limits = KeyLimits(ServiceOptions(key_streams=1))
    >>> with limits.stream("k1"), limits.stream("k2"):
    ...     pass
    """

    def __init__(
        self, options: ServiceOptions, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._options = options
        self._clock = clock
        self._uses: dict[str, _Use] = {}

    @contextmanager
    def request(self, key_id: str) -> Iterator[RequestSlot]:
        """Count a request of a key in this block. Raises ``TooManyRequestsError`` at a limit."""
        if not key_id:
            yield RequestSlot(lambda: None)
            return
        use = self._use(key_id)
        if use.requests >= self._options.key_requests:
            raise TooManyRequestsError(
                f"this API key has {use.requests} requests open, which is its limit"
            )
        self._spend(use)
        use.requests += 1

        def release() -> None:
            use.requests -= 1
            self._forget(key_id, use)

        slot = RequestSlot(release)
        try:
            yield slot
        finally:
            slot.release()

    @contextmanager
    def stream(self, key_id: str) -> Iterator[None]:
        """Count a stream of a key in this block. Raises ``TooManyRequestsError`` at the limit."""
        if not key_id:
            yield
            return
        use = self._use(key_id)
        if use.streams >= self._options.key_streams:
            raise TooManyRequestsError(
                f"this API key has {use.streams} streams open, which is its limit",
                retry_after_seconds=5.0,
            )
        use.streams += 1
        try:
            yield
        finally:
            use.streams -= 1
            self._forget(key_id, use)

    def _use(self, key_id: str) -> _Use:
        if key_id not in self._uses:
            self._uses[key_id] = _Use(self._burst, self._clock())
        return self._uses[key_id]

    @property
    def _burst(self) -> float:
        return max(self._options.key_rate, 1.0)

    def _spend(self, use: _Use) -> None:
        """Take a token; the bucket refills at the key's rate and holds the tokens of one second."""
        rate = self._options.key_rate
        if not rate:
            return
        now = self._clock()
        use.tokens = min(use.tokens + (now - use.filled_at) * rate, self._burst)
        use.filled_at = now
        if use.tokens < 1:
            raise TooManyRequestsError(
                f"this API key may send {rate:g} requests per second",
                retry_after_seconds=(1 - use.tokens) / rate,
            )
        use.tokens -= 1

    def _forget(self, key_id: str, use: _Use) -> None:
        if use.requests or use.streams:
            return
        if not self._options.key_rate:
            self._uses.pop(key_id, None)
        elif len(self._uses) > _MOST_IDLE:
            # An idle key has a full bucket again, or will have one within a second.
            self._uses = {
                one: kept for one, kept in self._uses.items() if kept.requests or kept.streams
            }
