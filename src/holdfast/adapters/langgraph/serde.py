"""Restricts what stored rows are decoded to: plain values, LangGraph's types, allowed classes."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, TypeAlias

from langgraph.checkpoint.serde.event_hooks import register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from holdfast.values.errors import CodecError

Allowed: TypeAlias = type | tuple[str, str]
"""A class, or a pair of its module and its name."""

_KINDS = frozenset({"null", "bytes", "bytearray", "msgpack"})
_refused: ContextVar[list[str] | None] = ContextVar("_refused", default=None)


class StrictSerializer(JsonPlusSerializer):
    """LangGraph's serialiser, restricted so that a row cannot choose the code that is executed.

    A row that names a class or function that is not allowed raises ``CodecError``. The framework's
    own serialiser would call it, or in its strict mode return another value instead. ::

        serde = StrictSerializer(allow=[Invoice, ("shop.models", "Customer")])
    """

    def __init__(self, *, allow: Iterable[Allowed] = ()) -> None:
        super().__init__(
            pickle_fallback=False,
            allowed_json_modules=None,
            allowed_msgpack_modules=tuple(allow) or None,
        )

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the decoded value. Raises ``CodecError`` if it names a class not allowed."""
        kind = data[0]
        if kind not in _KINDS:
            raise CodecError(f"a checkpoint has a value of the kind {kind!r}, which is never read")
        refused: list[str] = []
        token = _refused.set(refused)
        try:
            value = super().loads_typed((kind, data[1]))
        finally:
            _refused.reset(token)
        if refused:
            raise CodecError(
                f"a checkpoint names {refused[0]}, which is not allowed: if it is yours, pass "
                "allow=[...] with that class to HoldfastSaver, or set LANGGRAPH_STRICT_MSGPACK=true"
                " so that a compiled graph allows the types of its state"
            )
        return value


def _listen(event: Any) -> None:
    refused = _refused.get()
    if refused is not None and event["kind"] in {"msgpack_blocked", "msgpack_method_blocked"}:
        names = (event["module"], event["name"], event.get("method", ""))
        refused.append(".".join(filter(None, names)))


register_serde_event_listener(_listen)
