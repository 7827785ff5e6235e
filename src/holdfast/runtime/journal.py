"""What a resumed handler does not repeat: the stored steps of its task, and how often each came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from holdfast.values.codec import plain
from holdfast.values.errors import ConflictError, InvalidInputError
from holdfast.values.tasks.events import StepKey, StepRecord
from holdfast.values.tasks.records import content_digest

HISTORY = "history"
"""The kind of a step that is an append to the transcript."""


class Journal:
    """The steps that are stored, and the next key of each name in this run of the handler.

    >>> journal = Journal([])
    >>> journal.next_key("step", "fetch").occurrence, journal.next_key("step", "fetch").occurrence
    (1, 2)
    """

    def __init__(self, stored: Iterable[StepRecord]) -> None:
        self._stored = {step.key: step for step in stored}
        self._seen: Counter[tuple[str, str]] = Counter()

    def __bool__(self) -> bool:
        """Whether the task has a stored step, or this run has begun one; appends do not count."""
        kinds = [*(key.kind for key in self._stored), *(kind for kind, _ in self._seen)]
        return any(kind != HISTORY for kind in kinds)

    def next_key(self, kind: str, name: str) -> StepKey:
        """The key of the next step of this kind and name."""
        self._seen[kind, name] += 1
        return StepKey(name, self._seen[kind, name], kind)

    def find(self, key: StepKey) -> StepRecord | None:
        """The stored step, or ``None``."""
        return self._stored.get(key)

    def keep(self, step: StepRecord) -> None:
        """Remember a step that was stored in this run."""
        self._stored[step.key] = step


def check_digest(step: StepRecord, digest: str) -> None:
    """Refuse a stored step that ran with other arguments.

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
    """What stands for a step's arguments; of those that are not JSON only the type counts.

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
