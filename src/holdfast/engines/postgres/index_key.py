"""Words and names as an index can hold them: a btree takes no long entries."""

from __future__ import annotations

import hashlib

MAX_BYTES = 512


def index_key(text: str) -> str:
    """A text that is looked up as a whole; a long one by its digest.

    No word and no folded name has a colon, so that a digest stands for nothing else.

    >>> index_key("tide")
    'tide'
    >>> index_key("y" * 1000)[:15]
    'sha256:7e33ae3f'
    """
    raw = text.encode()
    return text if len(raw) <= MAX_BYTES else f"sha256:{hashlib.sha256(raw).hexdigest()}"
