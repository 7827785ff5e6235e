"""The options of a worker, for functions that pass them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict

from holdfast.runtime.runner import Ending


class WorkerOptions(TypedDict, total=False):
    """The keyword arguments of ``Worker``."""

    name: str | None
    concurrency: int
    tenants: Sequence[str] | None
    lease_seconds: float
    poll_seconds: float
    recovery_seconds: float
    grace_seconds: float
    watch: Callable[[Ending], None] | None
