"""The stored steps of a task, which a resumed handler does not repeat, and the next step keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from holdfast.values.codec import plain
from holdfast.values.errors import ConflictError, InvalidInputError
from holdfast.values.tasks.events import TRY, StepKey, StepRecord
from holdfast.values.tasks.records import content_digest

HISTORY = "history"
"""The kind of a step that is an append to the transcript."""


class Journal:
    """The stored steps of a task, and a counter per step name for this run of the handler.

    >>> journal = Journal([])
    >>> journal.next_key("step", "fetch").occurrence, journal.next_key("step", "fetch").occurrence
    (1, 2)
    """

    def __init__(self, stored: Iterable[StepRecord]) -> None:
        self._stored = {step.key: step for step in stored}
        # Tries are numbered over all runs; everything else begins again with each run.
        self._seen = Counter((key.kind, key.name) for key in self._stored if key.kind == TRY)

    def __bool__(self) -> bool:
        """True if the task has a stored step or this run has begun one; appends do not count."""
        kinds = [*(key.kind for key in self._stored), *(kind for kind, _ in self._seen)]
        return any(kind != HISTORY for kind in kinds)

    def next_key(self, kind: str, name: str) -> StepKey:
        """Return the key of the next step of this kind and name."""
        self._seen[kind, name] += 1
        return StepKey(name, self._seen[kind, name], kind)

    def find(self, key: StepKey) -> StepRecord | None:
        """Return the stored step, or ``None``."""
        return self._stored.get(key)

    def keep(self, step: StepRecord) -> None:
        """Add a step that this run has stored."""
        self._stored[step.key] = step


def check_digest(step: StepRecord, digest: str) -> None:
    """Raise ``ConflictError`` if a stored step ran with other arguments.

    >>> from datetime import UTC, datetime
    >>> check_digest(StepRecord("t1", StepKey("fetch"), [], datetime.now(UTC), digest="a"), "a")
    """
    if step.digest and digest and step.digest != digest:
        raise ConflictError(
            "step",
            str(step.key),
            f"{step.key} is stored with other arguments: a handler must take the same steps with "
            "the same arguments on every run; give a changed step another name",
        )


def arguments_digest(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return a digest of a step's arguments; an argument that is not JSON counts by its type only.

    >>> arguments_digest((1,), {}) == arguments_digest((1,), {})
    True
    """
    return content_digest(
        [[_stand_in(one) for one in args], {name: _stand_in(one) for name, one in kwargs.items()}]
    )


def _stand_in(value: Any) -> Any:
    try:
        return plain(value)
    except InvalidInputError:
        return {"type": f"{type(value).__module__}.{type(value).__qualname__}"}
