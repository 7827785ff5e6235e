"""The task ledger and the schedules of one owner."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from holdfast.contracts.schedules import ScheduleStore
from holdfast.contracts.tasks.ledger import TaskLedger
from holdfast.values.errors import InvalidInputError, NotSupportedError
from holdfast.values.owners import Owner


class OwnedLedger:
    """The tasks or the schedules of one owner: every call that takes an owner uses this one.

    Methods without an owner are for workers, which act for all owners of a tenant; here they raise.
    ::

        ana = OwnedLedger(ledger, "ana")
        task = await ana.submit("writer", ChatMessage.user("Tides of Brest?"))
    """

    def __init__(
        self, inner: TaskLedger | ScheduleStore, owner: str, attribute: str = "tasks"
    ) -> None:
        self._inner = inner
        self._attribute = attribute
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name.startswith("_") or not callable(method):
            raise AttributeError(name)
        if "owner" not in inspect.signature(method).parameters:
            return functools.partial(self._refuse, name)
        return functools.partial(self._call, method)

    def _call(self, method: Any, *args: Any, owner: Owner = None, **options: Any) -> Any:
        if owner not in (None, "", self._owner):
            raise InvalidInputError(
                "owner", f"must be {self._owner!r} or left out: this state was made by for_owner"
            )
        return method(*args, owner=self._owner, **options)

    def _refuse(self, name: str, *_args: Any, **_options: Any) -> Any:
        raise NotSupportedError(
            "task",
            f"{self._attribute}.{name} for one owner",
            why="it is for workers: use the state itself",
        )
