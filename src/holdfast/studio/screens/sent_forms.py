"""Forms that must count once: the token of each is kept for a day, with what the form made."""

from __future__ import annotations

from holdfast.values.errors import NotSupportedError, VersionConflictError
from holdfast.values.items import ItemKey, ItemPut
from holdfast.wiring.state import State

NAMESPACE = ("studio", "sent-forms")
KEPT_SECONDS = 86_400.0
UNKNOWN = "-"
"""What a form made that is being handled, or whose handling was cut off."""


async def begin(state: State, token: str) -> str | None:
    """Keep the token of a form. Returns ``None``, or what the form made when it was sent before.

    ::

        made = await begin(state, form["submit_key"])
    """
    put = ItemPut(NAMESPACE, token, {"made": UNKNOWN}, ttl_seconds=KEPT_SECONDS, expected_version=0)
    try:
        await state.items.put_many([put])
    except VersionConflictError:
        [item] = await state.items.get_many([ItemKey(NAMESPACE, token)])
        return UNKNOWN if item is None else str(item.value.get("made", UNKNOWN))
    except NotSupportedError:
        # No items here: a form that is sent twice counts twice.
        return None
    return None


async def end(state: State, token: str, made: str | None) -> None:
    """Store what a form made. ``None`` means nothing was made: the form may be sent again.

    ::

        await end(state, form["submit_key"], key.id)
    """
    value = None if made is None else {"made": made}
    ttl = None if made is None else KEPT_SECONDS
    try:
        await state.items.put_many([ItemPut(NAMESPACE, token, value, ttl_seconds=ttl)])
    except NotSupportedError:
        return
