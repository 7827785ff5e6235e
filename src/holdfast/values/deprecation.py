"""Deprecated names that still work, with a warning that names the new one."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, TypeVar, cast

from holdfast.values.errors import InvalidInputError

F = TypeVar("F", bound=Callable[..., Any])


def warn_deprecated(old: str, new: str, *, frames: int = 1) -> None:
    """Issue a ``DeprecationWarning`` at the caller's caller; ``frames=2`` is one frame further out.

    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     warn_deprecated("holdfast.TextBlock", "holdfast.content.TextBlock")
    >>> str(seen[0].message)
    'holdfast.TextBlock is deprecated: use holdfast.content.TextBlock'
    """
    text = f"{old} is deprecated: use {new}"
    warnings.warn(text, DeprecationWarning, stacklevel=2 + frames)


def moved(module: str, names: Mapping[ModuleType, Iterable[str]]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module, which finds names that moved to another module.

    >>> import math
    >>> find = moved("shapes", {math: ["pi"]})
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     round(find("pi"), 2)
    3.14
    >>> str(seen[0].message)
    'shapes.pi is deprecated: use math.pi'
    """
    modules = {name: where for where, those in names.items() for name in those}

    def find(name: str) -> Any:
        where = modules.get(name)
        if where is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_deprecated(f"{module}.{name}", f"{where.__name__}.{name}")
        return getattr(where, name)

    return find


def renamed(**names: str | tuple[str, Callable[[Any], Any]]) -> Callable[[F], F]:
    """Let a function or a class take keywords by their old names too: ``@renamed(k="limit")``.

    The signature stays as it is, for ``inspect`` and for a type checker. If the form of the value
    has changed, pass a function that converts it: ``after=("cursor", cursor_of)``.

    >>> @renamed(k="limit")
    ... def recall(query, *, limit=5):
    ...     return limit
    >>> recall("boats", limit=3)
    3
    """
    news = {old: (new, _same) if isinstance(new, str) else new for old, new in names.items()}

    def decorate(target: F) -> F:
        if isinstance(target, type):
            initial = vars(target)["__init__"]
            type.__setattr__(target, "__init__", wrap(initial, target.__name__))
            return target
        return cast("F", wrap(target, target.__name__))

    def wrap(function: Any, name: str) -> Any:
        def given(options: dict[str, Any]) -> dict[str, Any]:
            for old, (new, converted) in news.items():
                if old not in options:
                    continue
                if new in options:
                    raise InvalidInputError(new, f"is given twice: {old} is its old name")
                warn_deprecated(f"{name}({old}=…)", f"{name}({new}=…)", frames=2)
                options[new] = converted(options.pop(old))
            return options

        @functools.wraps(function)
        async def awaited(*args: Any, **options: Any) -> Any:
            return await function(*args, **given(options))

        @functools.wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            return function(*args, **given(options))

        return awaited if inspect.iscoroutinefunction(function) else called

    return decorate


def _same(value: Any) -> Any:
    return value
