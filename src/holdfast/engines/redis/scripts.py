"""The Lua scripts of the engine: files beside this one, loaded once."""

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
    """A script and the digest by which the server knows it.

    >>> Script.of("return 1").digest
    'e0e1f9fabfc9d4800c877a703b823ac0578ff8db'
    """

    text: str
    digest: str

    @classmethod
    def of(cls, text: str) -> Script:
        """A script with its digest."""
        # It names the script, as the protocol has it; it guards nothing.
        return cls(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


@cache
def _sources() -> Mapping[str, str]:
    folder = files(__package__).joinpath("lua")
    return {
        item.name.removesuffix(".lua"): item.read_text(encoding="utf-8")
        for item in folder.iterdir()
        if item.name.endswith(".lua")
    }


def load(**instead: str) -> dict[str, Script]:
    """All scripts by name; ``instead`` replaces files, as a test does with the clock.

    >>> "history_append" in load()
    True
    """
    sources = {**_sources(), **instead}
    return {
        name: Script.of(_INCLUDE.sub(lambda found: sources[found[1]].rstrip(), text))
        for name, text in sources.items()
    }
