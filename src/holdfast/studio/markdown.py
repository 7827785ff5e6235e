"""Converts the Markdown of stored messages to safe HTML.

The renderer escapes the text: raw HTML is off, so that a tag stays text. Links are http, https or
mailto, and carry no referrer. Pictures are not loaded: their address is a link. Headings and
tables stay text, for a message must not change the outline of the page around it.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markupsafe import Markup

from holdfast.studio.visible import visible

MOST = 8_000
"""A longer text is shown without conversion, because parsing it would take too long."""

_RULES = (
    *("fence", "list", "blockquote", "newline", "escape", "backticks", "emphasis"),
    *("strikethrough", "link", "entity"),
)
_PLAIN = Markup('<div class="md plain">{}</div>')
_SCHEMES = frozenset({"http", "https", "mailto"})
_MARKED = re.compile(r"[*_`\[~>\\&]|^\s*(?:[-+]|\d+[.)])\s", re.MULTILINE)


def markdown(text: object, most: int = MOST) -> Markup:
    r"""Return the HTML of a text.

    >>> markdown("**No** <b>tags</b>")
    Markup('<div class="md"><p><strong>No</strong> &lt;b&gt;tags&lt;/b&gt;</p>\n</div>')
    >>> markdown("[x](javascript:alert(1))")
    Markup('<div class="md"><p>[x](javascript:alert(1))</p>\n</div>')
    """
    shown = str(visible(str(text)))
    if len(shown) > most:
        return _PLAIN.format(shown[:most] + "…")
    if not _MARKED.search(shown):
        return _PLAIN.format(shown)
    return _rendered(shown)


@lru_cache(maxsize=500)
def _rendered(text: str) -> Markup:
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        for one in token.children or ():
            if one.type == "link_open":
                one.attrSet("rel", "noopener noreferrer nofollow")
                one.attrSet("target", "_blank")
    html = parser.renderer.render(tokens, parser.options, {})
    return Markup('<div class="md">{}</div>').format(Markup(html))  # noqa: S704 - rendered without HTML


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - a method of the library
        """Return whether a link is one that a reader may follow."""
        try:
            return urlsplit(url.strip()).scheme.lower() in _SCHEMES
        except ValueError:
            return False


@cache
def _parser() -> MarkdownIt:
    found = _Parser("zero", {"html": False, "linkify": False, "breaks": True, "maxNesting": 20})
    return found.enable(list(_RULES))
