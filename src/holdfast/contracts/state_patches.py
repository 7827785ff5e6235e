"""Changes to states that are written in the same step as events."""

from __future__ import annotations

from holdfast.contracts.owner_scope import OwnerScope
from holdfast.contracts.short_term import MAX_STATES, dropped_keys
from holdfast.values.checks import check_list, check_optional_count, check_seconds
from holdfast.values.codec import encode_fields
from holdfast.values.errors import InvalidInputError
from holdfast.values.limits import Limits
from holdfast.values.states import ExpectedWrite, StatePatch, StateWrite


def check_patches(
    patches: object,
    scope: OwnerScope,
    limits: Limits,
    ttl_seconds: float | None,
    kept_versions: int = 0,
) -> list[ExpectedWrite]:
    """Check patches, one per session at most, and return them as writes with stored ids.

    >>> check_patches([], OwnerScope(""), Limits(), None)
    []
    """
    found: dict[str, ExpectedWrite] = {}
    given = check_list("patches", patches)
    if len(given) > MAX_STATES:
        raise InvalidInputError(
            "patches", f"has {len(given)} patches, and at most {MAX_STATES} are allowed"
        )
    for at, one in enumerate(given):
        field = f"patches[{at}]"
        if not isinstance(one, StatePatch):
            raise InvalidInputError(field, f"must be a StatePatch, not {type(one).__name__}")
        session = scope.id(f"{field}.session_id", one.session_id)
        if session in found:
            raise InvalidInputError(
                f"{field}.session_id", "is patched twice: merge the patches of a session"
            )
        values = encode_fields(one.patch, field=f"{field}.patch")
        limits.check_value(f"{field}.patch", *values, *values.values())
        ttl = ttl_seconds if one.ttl_seconds is None else one.ttl_seconds
        write = StateWrite(
            session,
            values,
            dropped_keys(f"{field}.delete_keys", one.delete_keys, values),
            None if ttl is None else check_seconds(f"{field}.ttl_seconds", ttl),
            kept_versions=kept_versions,
        )
        expected = check_optional_count(f"{field}.expected_version", one.expected_version)
        found[session] = ExpectedWrite(write, expected)
    return list(found.values())
