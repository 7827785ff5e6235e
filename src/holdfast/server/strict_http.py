"""Refuses HTTP/1.1 requests that a proxy and a server can parse differently (request smuggling).

A proxy and the service behind it must agree where a request ends. h11 accepts some heads on which
RFC 9112 allows servers to disagree; here they are malformed, and the connection is closed.
"""

from __future__ import annotations

import re
from typing import Any

import h11

_END_OF_HEAD = re.compile(rb"\n\r?\n")
_FOLDED = re.compile(rb"\n[ \t]")
_LENGTH = re.compile(rb"\ncontent-length[ \t]*:([^\n]*)", re.IGNORECASE)
_ENCODING = re.compile(rb"\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_OLD = re.compile(rb"[^\n]* HTTP/1\.0\r?\n")


class StrictConnection(h11.Connection):
    r"""h11's server connection that checks a request head before h11 parses it.

    >>> connection = StrictConnection(h11.SERVER)
    >>> lines = ["POST / HTTP/1.1", "Host: a", "Content-Length: 1", "Transfer-Encoding: chunked"]
    >>> connection.receive_data("\r\n".join([*lines, "", ""]).encode())
    >>> connection.next_event()
    Traceback (most recent call last):
    ...
    h11._util.RemoteProtocolError: Content-Length beside Transfer-Encoding
    """

    def next_event(self) -> Any:
        """Return the next event. Raises ``h11.RemoteProtocolError`` for an ambiguous head."""
        if self.their_state is h11.IDLE:
            received, _ = self.trailing_data
            if end := _END_OF_HEAD.search(received):
                _check_head(received[: end.end()])
        return super().next_event()


def _check_head(head: bytes) -> None:
    lengths: list[bytes] = _LENGTH.findall(head)
    if _FOLDED.search(head):
        raise h11.RemoteProtocolError("a header is folded over two lines")
    if len(lengths) > 1 or any(b"," in one for one in lengths):
        raise h11.RemoteProtocolError("more than one Content-Length")
    if _ENCODING.search(head):
        if lengths:
            raise h11.RemoteProtocolError("Content-Length beside Transfer-Encoding")
        if _OLD.match(head):
            raise h11.RemoteProtocolError("Transfer-Encoding in HTTP/1.0")
