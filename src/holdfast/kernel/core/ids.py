"""Identifiers minted by Holdfast."""

from __future__ import annotations

import os
import secrets
import threading
import time

_lock = threading.Lock()
_last_ms = 0
_counter = 0


def new_id() -> str:
    """A UUIDv7: unique, and ordered by the time of minting within a process.

    >>> first, second = new_id(), new_id()
    >>> first < second and len(first) == 36
    True
    """
    global _last_ms, _counter  # noqa: PLW0603 - the order within a millisecond is process-wide
    with _lock:
        now = time.time_ns() // 1_000_000
        if now > _last_ms:
            # 41 random bits leave 2^41 ids of room below the top of the 42-bit counter.
            _last_ms, _counter = now, secrets.randbits(41)
        else:
            _counter += 1
        ms, counter = _last_ms, _counter
    value = (ms & (1 << 48) - 1) << 80
    value |= 0x7 << 76
    value |= (counter >> 30 & 0xFFF) << 64
    value |= 0b10 << 62
    value |= (counter & (1 << 30) - 1) << 32
    value |= int.from_bytes(os.urandom(4))
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def new_ref() -> str:
    """An opaque, unguessable reference of 160 random bits, in letters safe for URLs and keys.

    >>> len(new_ref())
    27
    """
    return secrets.token_urlsafe(20)
