"""Words and names as keys of an index: a btree cannot store long keys."""

from __future__ import annotations

import hashlib

MAX_BYTES = 512


def index_key(text: str) -> str:
    """Return the index key of a text: the text, or its digest if it is long.

    No word and no folded name has a colon, so no text equals a digest.

    >>> index_key("tide")
    'tide'
    >>> index_key("y" * 1000)[:15]
    'sha256:7e33ae3f'
    """
    raw = text.encode()
    return text if len(raw) <= MAX_BYTES else f"sha256:{hashlib.sha256(raw).hexdigest()}"
