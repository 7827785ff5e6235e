"""Limits the size of a response: bytes of files, and JSON values, which take time to convert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.values.content import ChatMessage, DataBlock, ToolUseBlock

MAX_VALUES = 50_000
"""Maximum JSON values in a response's messages: about a tenth of a second on the event loop."""

_PER_MESSAGE, _PER_PART = 10, 5


@dataclass(slots=True)
class Room:
    """How much still fits into a response.

    >>> room = Room(10)
    >>> room.take(8), room.take(8)
    (True, False)
    """

    left: int
    """Bytes left for files."""

    values: int = MAX_VALUES
    """JSON values left for messages."""

    untouched: bool = True
    """True until a message was taken: the first message always fits."""

    def take(self, size: int) -> bool:
        """Use ``size`` bytes of the room. Returns false if they do not fit."""
        fits = size <= self.left
        self.left -= size if fits else 0
        return fits

    def newest(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return the newest messages whose values fit, and use their room.

        >>> said = [ChatMessage.user("low tide"), ChatMessage.user("high tide")]
        >>> [one.text for one in Room(0, values=20).newest(said)]
        ['high tide']
        """
        kept: list[ChatMessage] = []
        for message in reversed(messages):
            cost = _cost(message, self.values)
            if cost > self.values and not self.untouched:
                break
            kept.append(message)
            self.values, self.untouched = self.values - cost, False
        return kept[::-1]


def _cost(message: ChatMessage, most: int) -> int:
    """Return the number of values in a message; counting stops when there are too many."""
    cost, stack = _PER_MESSAGE + _PER_PART * len(message.content), list[Any]([message.metadata])
    for block in message.content:
        if isinstance(block, DataBlock):
            stack.append(block.data)
        elif isinstance(block, ToolUseBlock):
            stack.append(block.input)
    while stack and cost <= most:
        one = stack.pop()
        cost += 1
        if isinstance(one, dict):
            stack += one.values()
        elif isinstance(one, list):
            stack += one
    return cost
