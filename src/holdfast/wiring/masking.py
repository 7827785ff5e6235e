"""Masks secrets, so that none is in a repr, a log line or an error."""

from __future__ import annotations

import re

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NAME = re.compile(r"[\w./\\~ -]*")
_SECRET_KEY = re.compile(
    r"(?i)(pass|pwd|^auth$|secret|token|credential|(^|[_-])key($|[_-])|_key|signature)"
)
_QUERY_PART = re.compile(r"([?&])([^=&#]*)=([^&#]*)")


def shown_scheme(scheme: str) -> str:
    """Return the scheme of a URL for an error message; stars if it may have secrets.

    >>> shown_scheme("mysql"), shown_scheme("host=db password=x")
    ('mysql', '***')
    """
    return scheme if _SCHEME.fullmatch(f"{scheme}:") else "***"


def shown_name(name: str) -> str:
    """Return a text that is no URL, such as a folder's name, for an error message.

    A text with other characters than a path has stars in its place: it may be a connection string.

    >>> shown_name("data/mine"), shown_name("host=db password=x")
    ('data/mine', '***')
    """
    return name if _NAME.fullmatch(name) else "***"


def mask_url(url: str) -> str:
    """Return a URL with its password, and the secrets in its query, replaced by stars.

    >>> mask_url("postgresql://ana:s3cret@db/main?sslpassword=x&application_name=y")
    'postgresql://ana:***@db/main?sslpassword=***&application_name=y'
    """
    if url and not _SCHEME.match(url):
        # A text of another kind, such as "host=db password=…", may hold a secret anywhere.
        return "***"
    # A password may hold any character, also those that end the host of a URL.
    scheme, slashes, rest = url.partition("://")
    user_info, at, after = rest.rpartition("@")
    if at and ":" in user_info and "://" not in user_info:
        user = user_info.partition(":")[0]
        url = f"{scheme}{slashes}{user}:***@{after}"

    def starred(found: re.Match[str]) -> str:
        value = "***" if _SECRET_KEY.search(found[2]) else found[3]
        return f"{found[1]}{found[2]}={value}"

    return _QUERY_PART.sub(starred, url)
