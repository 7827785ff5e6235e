"""Failpoints: named points in the code, between two durable writes, where tests inject failures.

A failpoint without a hook costs one lookup in an empty dict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

FAILPOINTS = (
    "erase.after_begin",
    "erase.after_shred",
    "erase.after_delete",
    "erase.after_pass",
    "keys.before_replace",
    "keys.before_rewrap",
    "append.after_hot",
    "append.after_reserve",
    "append.after_fallback",
    "append.after_rewrite",
    "consolidate.after_claim",
    "consolidate.before_commit",
    "consolidate.after_commit",
    "consolidate.after_acknowledge",
    "unload.after_mark",
    "unload.after_durable",
    "clear.after_place",
    "clear.after_durable",
    "edit.after_unload",
    "edit.after_durable",
    "refill.after_lock",
    "refill.after_grant",
    "refill.after_window",
    "state.after_read",
    "state.after_save",
    "state_commit.after_read",
    "state_commit.after_save",
    "state_clear.after_durable",
    "state_write.after_register",
    "state_restore.after_load",
    "state_evict.after_begin",
    "state_evict.after_durable",
    "state_fallback.after_write",
    "state_fallback.after_read",
    "state_fallback.after_merge",
)
"""All failpoints, in the order in which the code reaches them."""

_hooks: dict[str, Callable[[], None]] = {}


def hit(name: str) -> None:
    """Call the hook of a failpoint, if it has one.

    >>> hit("append.after_hot")
    """
    if _hooks:
        hook = _hooks.get(name)
        if hook is not None:
            hook()


@contextmanager
def failpoint(name: str, hook: Callable[[], None]) -> Iterator[None]:
    """Call ``hook`` at a failpoint until the block ends. It may raise, or kill the process.

    >>> seen = []
    >>> with failpoint("append.after_hot", lambda: seen.append(1)):
    ...     hit("append.after_hot")
    >>> seen
    [1]
    """
    if name not in FAILPOINTS:
        raise ValueError(f"there is no failpoint {name!r}")
    _hooks[name] = hook
    try:
        yield
    finally:
        del _hooks[name]
