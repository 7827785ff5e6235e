"""What an action on many records did, for the page that follows it."""

from __future__ import annotations

import re

from starlette.requests import Request

PARAMETER = "did"
_DONE = {
    "cancel": "Canceled",
    "pause": "Paused",
    "resume": "Resumed",
    "retry": "Submitted again",
    "forget": "Forgotten",
}
_WORD = re.compile(r"([a-z]{1,10})\.(\d{1,7})\.(\d{1,7})")


def notice(what: str, done: int, refused: int = 0) -> str:
    """Return the value of ``?did=`` for an action.

    >>> notice("cancel", 3, 1)
    'cancel.3.1'
    """
    return f"{what}.{done}.{refused}"


def notice_text(word: str) -> str:
    """Return the text of a notice; empty for any other value, so that a link cannot set a text.

    >>> notice_text("cancel.3.1"), notice_text("pay us"), notice_text("retry.1.0")
    ('Canceled: 3. Not possible for 1.', '', 'Submitted again: 1.')
    """
    found = _WORD.fullmatch(word)
    if found is None or found[1] not in _DONE:
        return ""
    more = f" Not possible for {int(found[3])}." if int(found[3]) else ""
    return f"{_DONE[found[1]]}: {int(found[2])}.{more}"


def notice_of(request: Request) -> str:
    """Return the text of a request's notice.

    ::

        notice_of(request)
    """
    return notice_text(request.query_params.get(PARAMETER, ""))
