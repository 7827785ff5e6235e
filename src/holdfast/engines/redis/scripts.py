"""The Lua scripts of the engine: files in the folder ``lua``, loaded once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_INCLUDE = re.compile(r"^-- include (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    """A script and its SHA-1 digest, by which the server identifies it.

    >>> Script.of("return 1").digest
    'e0e1f9fabfc9d4800c877a703b823ac0578ff8db'
    """

    text: str
    digest: str

    @classmethod
    def of(cls, text: str) -> Script:
        """Return a script with its digest."""
        # ``EVALSHA`` identifies scripts by SHA-1; no security depends on it.
        return cls(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


@cache
def _sources() -> Mapping[str, str]:
    folder = files(__package__).joinpath("lua")
    return {
        item.name.removesuffix(".lua"): item.read_text(encoding="utf-8")
        for item in folder.iterdir()
        if item.name.endswith(".lua")
    }


def for_replicas() -> dict[str, str]:
    """Return the replacements for ``load`` on a server that may be a promoted replica.

    >>> list(for_replicas())
    ['promotion']
    """
    return {"promotion": _sources()["promotion_of_replica"]}


def load(**instead: str) -> dict[str, Script]:
    """Return all scripts by name. ``instead`` replaces parts, as tests do with the clock.

    >>> "history_append" in load()
    True
    """
    sources = {**_sources(), **instead}
    return {
        name: Script.of(_INCLUDE.sub(lambda found: sources[found[1]].rstrip(), text))
        for name, text in sources.items()
    }
