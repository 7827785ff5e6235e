"""Identifiers that Holdfast creates."""

from __future__ import annotations

import os
import secrets
import threading
import time

_POOL_BYTES = 4096
_lock = threading.Lock()
_last_ms = 0
_counter = 0
_pool = b""
_used = 0


def _random(count: int) -> bytes:
    """Return random bytes from a pool that ``os.urandom`` fills. The caller holds the lock."""
    global _pool, _used  # noqa: PLW0603 - one pool for the process
    if _used + count > len(_pool):
        _pool, _used = os.urandom(_POOL_BYTES), 0
    _used += count
    return _pool[_used - count : _used]


def _forget_pool() -> None:
    """Discard the pool after a fork, so that the child does not repeat the parent's bytes."""
    global _pool, _used
    _pool, _used = b"", 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def new_id() -> str:
    """Return a UUIDv7: unique, and ordered by the time of creation within a process.

    >>> first, second = new_id(), new_id()
    >>> first < second and len(first) == 36
    True
    """
    global _last_ms, _counter  # noqa: PLW0603 - the order within a millisecond is process-wide
    with _lock:
        now = time.time_ns() // 1_000_000
        if now > _last_ms:
            # 41 random bits leave room for 2^41 ids below the top of the 42-bit counter.
            _last_ms, _counter = now, int.from_bytes(_random(6)) >> 7
        else:
            _counter += 1
        ms, counter, rest = _last_ms, _counter, _random(4).hex()
    # 48 bits of time, 12 and 30 of the counter around the variant, 32 random ones.
    return (
        f"{ms >> 16 & 0xFFFFFFFF:08x}-{ms & 0xFFFF:04x}-7{counter >> 30 & 0xFFF:03x}-"
        f"{0x8000 | counter >> 16 & 0x3FFF:04x}-{counter & 0xFFFF:04x}{rest}"
    )


def new_ref() -> str:
    """Return an opaque reference of 160 random bits, in characters safe for URLs and keys.

    >>> len(new_ref())
    27
    """
    return secrets.token_urlsafe(20)
