"""What an action on many records did, for the page that follows it."""

from __future__ import annotations

import re

from starlette.requests import Request

PARAMETER = "did"
PICKED = "pick"
"""The parameter with the records that stay chosen, because the action was not possible for them."""

_DONE = {
    "cancel": "Canceled",
    "pause": "Paused",
    "resume": "Resumed",
    "retry": "Submitted again",
    "forget": "Forgotten",
}
_ASKED = {
    "cancel": "a worker ends it when it sees the request",
    "pause": "at the next step, or after the answer",
}
_REFUSED = {
    "cancel": "not there",
    "pause": "ended, or paused already",
    "resume": "not paused",
    "retry": "not ended yet",
    "forget": "not there",
}
_WORD = re.compile(r"([a-z]{1,10})\.(\d{1,7})\.(\d{1,7})(?:\.(\d{1,7})\.(\d{1,7}))?")


def notice(what: str, done: int, refused: int = 0, *, ended: int = 0, asked: int = 0) -> str:
    """Return the value of ``?did=`` for an action.

    ``ended`` had ended before, and ``asked`` are requests to a worker.

    >>> notice("cancel", 3, 1), notice("cancel", 2, ended=1)
    ('cancel.3.1', 'cancel.2.0.1.0')
    """
    more = f".{ended}.{asked}" if ended or asked else ""
    return f"{what}.{done}.{refused}{more}"


def notice_text(word: str) -> str:
    """Return the text of a notice; empty for any other value, so that a link cannot set a text.

    >>> notice_text("retry.3.1"), notice_text("pay us"), notice_text("retry.1.0")
    ('Submitted again: 3. Not possible for 1 (not ended yet).', '', 'Submitted again: 1.')
    >>> notice_text("cancel.1.0.1.0")
    'Canceled: 1. Had ended already: 1.'
    """
    found = _WORD.fullmatch(word)
    if found is None or found[1] not in _DONE:
        return ""
    what = found[1]
    done, refused, ended, asked = (int(one or 0) for one in found.groups()[1:])
    text = f"{_DONE[what]}: {done}."
    if asked:
        text += f" Requested: {asked} ({_ASKED.get(what, 'not done yet')})."
    if ended:
        text += f" Had ended already: {ended}."
    return f"{text} Not possible for {refused} ({_REFUSED[what]})." if refused else text


def notice_of(request: Request) -> str:
    """Return the text of a request's notice.

    ::

        notice_of(request)
    """
    return notice_text(request.query_params.get(PARAMETER, ""))
