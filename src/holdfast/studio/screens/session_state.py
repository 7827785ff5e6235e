"""The working state of a session at a moment, and what its last write before that changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from holdfast.contracts.short_term import MAX_VERSIONS, ShortTerm
from holdfast.values.errors import NotFoundError
from holdfast.values.states import StateSnapshot, StateVersion

Change = Literal["", "new", "changed", "dropped"]


@dataclass(frozen=True, slots=True)
class StateThen:
    """A state as it was at a moment.

    >>> StateThen(StateSnapshot({"step": 2}, 7), {"step": "changed"}).is_known
    True
    """

    snapshot: StateSnapshot
    changes: Mapping[str, Change] = field(default_factory=dict)
    """What the write that made this version did to each key; empty if it is not known."""

    written_at: datetime | None = None
    before: StateSnapshot | None = None
    is_known: bool = True
    """Whether the version of that moment is still stored."""


async def read_state(store: ShortTerm, session: str, moment: datetime | None) -> StateThen:
    """Read the state of a session as it is, or as it was before a moment.

    ::

        then = await read_state(state.short_term, "s1", event.occurred_at)
    """
    if moment is None:
        newest = await store.snapshot(session)
        kept = await store.versions(session, limit=2)
        return await _with_changes(store, session, newest, kept)
    versions = await store.versions(session, limit=MAX_VERSIONS)
    kept = [one for one in versions if one.written_at < moment]
    if kept:
        try:
            found = await store.snapshot(session, at=kept[0].version)
        except NotFoundError:
            # A write has pushed it out of the kept ones since the list was read.
            return StateThen(StateSnapshot({}), is_known=False)
        return await _with_changes(store, session, found, kept)
    # Nothing older is kept: before the first write there was no state, and who knows which is the
    # first once the list is full.
    return StateThen(StateSnapshot({}), is_known=False)


async def _with_changes(
    store: ShortTerm, session: str, found: StateSnapshot, kept: list[StateVersion]
) -> StateThen:
    at = next((n for n, one in enumerate(kept) if one.version == found.version), None)
    if at is None:
        return StateThen(found)
    if at + 1 == len(kept):
        return StateThen(found, written_at=kept[at].written_at)
    try:
        before = await store.snapshot(session, at=kept[at + 1].version)
    except NotFoundError:
        return StateThen(found, written_at=kept[at].written_at)
    changes = differences(before.state, found.state)
    return StateThen(found, changes, kept[at].written_at, before)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Change]:
    """Return what happened to each key; unchanged keys are left out.

    >>> differences({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 4, "d": 5})
    {'b': 'changed', 'd': 'new', 'c': 'dropped'}
    """
    found: dict[str, Change] = {
        key: "changed" if key in before else "new"
        for key, value in after.items()
        if key not in before or before[key] != value
    }
    return found | {key: "dropped" for key in before if key not in after}
