"""Where hostile input can enter a store: one probe for each parameter of each method."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.testing.hostile import (
    JSON_VALUES,
    KEPT,
    REFUSED,
    TEXTS,
    VECTORS,
    Hostile,
    Verdict,
)

Kind = Literal["id", "optional_id", "absent_id", "text", "json", "object", "vector"]

NO_ECHO = object()
"""What a probe of a pure read returns: there is nothing to compare."""


def absent(value: Any) -> Any:
    """What comes back for an ``absent_id``: the empty text where nothing was given."""
    return "" if value is None else value


@dataclass(frozen=True)
class Probe:
    """One parameter of one method.

    ``use`` calls the method with the value in its place and returns what the store then gives back
    for it (``NO_ECHO`` when nothing can come back, as in a read of an unknown id). It may write
    what the call needs before it through ``prepare``, which runs once, before the first value.
    ``expect`` says what must come back, where that is not the value itself; ``judge`` overrides the
    verdict, where the contract gives a value another meaning.

    For the kind ``object``, the values are dicts: each JSON value under a key, and each text as a
    key.
    """

    name: str
    kind: Kind
    use: Callable[[Any, Any], Awaitable[Any]]
    prepare: Callable[[Any], Awaitable[Any]] | None = None
    expect: Callable[[Any], Any] = lambda value: value
    judge: Callable[[Hostile], Verdict | None] = lambda _hostile: None
    options: tuple[tuple[str, Any], ...] = ()

    def corpus(self) -> Iterator[Hostile]:
        """The values of this probe's kind, each with its verdict."""
        for hostile in _corpus(self.kind):
            yield Hostile(hostile.name, hostile.value, self.judge(hostile) or hostile.verdict)


def _corpus(kind: Kind) -> Iterator[Hostile]:
    match kind:
        case "id":
            yield from (Hostile(text.name, text.value, text.as_id) for text in TEXTS)
        case "optional_id":
            for text in TEXTS:
                yield Hostile(text.name, text.value, KEPT if text.value == "" else text.as_id)
        case "absent_id":
            for text in TEXTS:
                yield Hostile(text.name, text.value, KEPT if not text.value else text.as_id)
        case "text":
            yield from TEXTS
        case "json":
            yield from JSON_VALUES
        case "object":
            yield from _objects()
        case "vector":
            yield from VECTORS


def _objects() -> Iterator[Hostile]:
    for value in JSON_VALUES:
        yield Hostile(f"{value.name}, under a key", {"k": value.value}, value.verdict)
    for text in TEXTS:
        if isinstance(text.value, str):
            yield Hostile(f"{text.name}, as a key", {text.value: 1}, text.verdict)
    for name, other in (("a list", [1]), ("text", "x"), ("a number", 1)):
        yield Hostile(f"{name} for a dict", other, REFUSED)
