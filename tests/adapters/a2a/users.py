"""Calls of named users."""

from __future__ import annotations

from a2a.auth.user import User
from a2a.server.context import ServerCallContext


class _Named(User):
    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        return bool(self._name)

    @property
    def user_name(self) -> str:
        return self._name


def call_of(name: str) -> ServerCallContext:
    """A call of a user."""
    return ServerCallContext(user=_Named(name))


ANA, BO = call_of("ana"), call_of("bo")
