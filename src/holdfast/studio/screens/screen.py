"""What a screen is: a path, a page, and the actions of its forms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from holdfast.studio.desk import Desk

Handler: TypeAlias = Callable[[Desk, Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Screen:
    """One path of Studio. A form names its action in the field ``do``.

    ::

        Screen("/studio", inbox, {"answer": answer})
    """

    path: str
    page: Handler
    actions: Mapping[str, Handler] = field(default_factory=dict)
    operators: bool = False
    """Whether only operators may see the screen."""
