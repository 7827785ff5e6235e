"""Base classes of the stores that agents call: for a whole tenant, or for one of its owners."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Self, cast

from holdfast.contracts.owner_scope import NO_OWNER, OwnerScope
from holdfast.values.errors import HoldfastError
from holdfast.values.limits import DEFAULT_LIMITS, Limits


class Layered:
    """Base class of stores: calls go to an engine's storage, which layers can wrap."""

    def add_layer(self, layer: Callable[[Any], Any]) -> None:
        """Wrap the engine's storage in a layer with the same interface, such as encryption.

        ::

            history.add_layer(lambda storage: SealedTranscripts(storage, seal))
        """
        own = vars(self)
        own["_storage"] = layer(own["_storage"])


class Front(Layered):
    """Base class of stores that can be limited to one owner of a tenant.

    The scope adds the owner to the caller's ids before they go to the engine, and removes it from
    the ids that the engine returns.
    """

    _scope: OwnerScope = NO_OWNER
    _limits: Limits = DEFAULT_LIMITS

    def use_limits(self, limits: Limits) -> None:
        """Replace the default limits on the sizes of values and queries.

        ::

            history.use_limits(Limits(value_bytes=0))
        """
        self._limits = limits

    def for_owner(self, scope: OwnerScope) -> Self:
        """Return a view of this store for one owner; errors show ids as the caller wrote them.

        ::

            history = History(storage).for_owner(OwnerScope("ana"))
        """
        own: Any = type(self)
        view = cast("Self", object.__new__(_naming_own_ids(own)))
        view.__dict__.update(self.__dict__)
        view._use_scope(scope)  # noqa: SLF001 - it is one of us
        return view

    def _use_scope(self, scope: OwnerScope) -> None:
        self._scope = scope


@functools.cache
def _naming_own_ids(front: Any) -> Any:
    methods = {
        name: _named(method)
        for name, method in inspect.getmembers(front, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    named = {"__module__": front.__module__, "__doc__": front.__doc__}
    return type(front)(front.__name__, (front,), named | methods)


def _named(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def called(self: Any, *args: Any, **options: Any) -> Any:
        try:
            return await method(self, *args, **options)
        except HoldfastError as error:
            self._scope.own_error(error)
            raise

    return called
