"""The stored steps of a task, which a resumed handler does not repeat, and the next step keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.values.codec import plain
from holdfast.values.errors import ConflictError, InvalidInputError
from holdfast.values.tasks.events import HISTORY, TRY, StepKey, StepRecord
from holdfast.values.tasks.records import content_digest

MAX_SHOWN = 20
"""How many stored steps, and how many steps of this run, an error lists."""

_IN_ORDER = frozenset({"step", "ask", "say", "sleep", "receive", "child"})
"""The kinds of steps that every run of a handler must repeat."""


class Journal:
    """The stored steps of a task, and a counter per step name for this run of the handler.

    >>> journal = Journal([])
    >>> journal.next_key("step", "fetch").occurrence, journal.next_key("step", "fetch").occurrence
    (1, 2)
    """

    def __init__(self, stored: Iterable[StepRecord]) -> None:
        self._stored = {step.key: step for step in stored}
        self._before = [] if _caught(self._stored.values()) else list(_ordered(self._stored))
        self._taken: list[StepKey] = []
        # Tries are numbered over all runs; everything else begins again with each run.
        self._seen = Counter((key.kind, key.name) for key in self._stored if key.kind == TRY)

    def __bool__(self) -> bool:
        """True if the task has a stored step or this run has begun one; appends do not count."""
        kinds = [*(key.kind for key in self._stored), *(kind for kind, _ in self._seen)]
        return any(kind != HISTORY for kind in kinds)

    def next_key(self, kind: str, name: str) -> StepKey:
        """Return the key of the next step of this kind and name."""
        self._seen[kind, name] += 1
        key = StepKey(name, self._seen[kind, name], kind)
        if kind in _IN_ORDER:
            self._taken.append(key)
        return key

    def find(self, key: StepKey) -> StepRecord | None:
        """Return the stored step, or ``None``."""
        return self._stored.get(key)

    @property
    def skipped(self) -> list[StepKey]:
        """The steps of earlier runs that this run has not taken, in the order they were stored."""
        taken = set(self._taken)
        return [key for key in self._before if key not in taken]

    def check(self, *, ended: bool = False) -> None:
        """Raise ``ConflictError`` if this run does not take the steps that earlier runs stored.

        Call it when a run takes a step that is not stored, and when it has ``ended``.
        """
        if not self.skipped:
            return
        taken = [*map(str, self._taken[-MAX_SHOWN:]), *(["the end"] if ended else [])]
        stored = list(map(str, self._before[:MAX_SHOWN]))
        first = self.skipped[0]
        raise ConflictError(
            "step",
            str(first),
            f"the handler did not repeat {first}, which is stored. "
            f"Stored steps: {', '.join(stored)}; steps of this run: {', '.join(taken)}. "
            "Run the task with the code that it began with, or give the changed handler a new "
            "version",
        )

    def taken_over(self, kind: str) -> set[str]:
        """Return the task ids in the steps of a kind that a fork copied from the original task."""
        stored = (step for step in self._stored.values() if step.key.kind == kind)
        return {step.result["task_id"] for step in stored if not step.fence}

    def is_ahead(self, key: StepKey) -> bool:
        """Return whether this run takes a new step although it has not repeated all stored ones."""
        # A fork does not take over a child that was not completed, and submits it anew.
        ordered = key.kind in _IN_ORDER and key.kind != "child"
        return ordered and key not in self._stored and bool(self.skipped)

    def keep(self, step: StepRecord) -> None:
        """Add a step that this run has stored."""
        self._stored[step.key] = step


def _ordered(stored: Iterable[StepKey]) -> Iterator[StepKey]:
    return (key for key in stored if key.kind in _IN_ORDER)


def _caught(stored: Iterable[StepRecord]) -> bool:
    """Return whether a handler caught the final failure of a step and took more steps.

    A failed step has no stored result and runs again. It may succeed then, so that the next run
    takes other steps.
    """
    failed: set[int] = set()
    for step in stored:
        if step.key.kind == TRY:
            if step.result.get("retry_in_seconds") is None:
                failed.add(step.fence)
        elif step.fence in failed and step.key.kind in _IN_ORDER:
            return True
    return False


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
            "the same arguments on every run; run the task with the code that it began with, or "
            "give the changed handler a new version",
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
