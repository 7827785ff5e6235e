"""Masks secrets, so that none is in a repr, a log line or an error."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_SECRET_KEY = re.compile(r"(?i)(pass|secret|token|credential|(^|[_-])key($|[_-])|_key|signature)")
_QUERY_PART = re.compile(r"([?&])([^=&#]*)=([^&#]*)")


def mask_url(url: str) -> str:
    """Return a URL with its password, and the secrets in its query, replaced by stars.

    >>> mask_url("postgresql://ana:s3cret@db/main?sslpassword=x&application_name=y")
    'postgresql://ana:***@db/main?sslpassword=***&application_name=y'
    """
    try:
        user_info = urlsplit(url).netloc.rpartition("@")[0]
    except ValueError:
        return "***"
    if ":" in user_info:
        user = user_info.partition(":")[0]
        url = url.replace(f"{user_info}@", f"{user}:***@", 1)

    def starred(found: re.Match[str]) -> str:
        value = "***" if _SECRET_KEY.search(found[2]) else found[3]
        return f"{found[1]}{found[2]}={value}"

    return _QUERY_PART.sub(starred, url)
