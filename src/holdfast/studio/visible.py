"""Makes invisible characters, and those that change the direction of text, visible."""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup

_HIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)


def visible(value: Any) -> Any:
    r"""Return a text in which control and bidirectional characters show as their code.

    >>> visible("a\u202eb")
    'a[U+202E]b'
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _HIDDEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", value)
