"""Which calls a Cypher query may contain: the functions of Cypher, and no function of SQL.

AGE lets a query call any SQL function by its full name, ``pg_catalog.query_to_xml`` included, and
its own functions that take the name of another graph. Either could access data outside the tenant's
graph. So this module tokenizes the text by the rules of AGE's own scanner and checks every call.
"""

from __future__ import annotations

import re

from holdfast.values.errors import InvalidInputError

FUNCTIONS = frozenset(
    """
    abs acos asin atan atan2 avg ceil coalesce collect cos cot count degrees e end_id exists
    exp floor head id isempty keys label labels last left length log log10 ltrim max min
    nodes percentilecont percentiledisc pi properties radians rand range relationships replace
    reverse right round rtrim sign sin size split sqrt start_id stdev stdevp substring
    sum tail tan timestamp toboolean tobooleanlist tofloat tofloatlist tointeger tointegerlist
    tolower tostring tostringlist toupper trim type
    """.split()  # noqa: SIM905 - a page of words, not a column
)
"""Functions that access only their arguments. Not startNode: it takes the name of a graph."""

WORDS = frozenset(
    """
    all and any as asc by case contains create delete desc detach distinct else end ends exists
    in is limit match merge none not on optional or order remove return set single skip starts then
    union unwind when where with xor
    """.split()  # noqa: SIM905 - likewise
)
"""Words of Cypher that a parenthesis may follow."""

_TOKEN = re.compile(
    r"""
    (?P<space> [\t\n\v\f\r ]+ | //[^\n\r]* | /\*.*?\*/ )
    | (?P<string> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
    | (?P<quoted> `(?:[^`]|``)*` )
    | (?P<name> [A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]* )
    | (?P<open> ['"`] | /\* )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def check_calls(text: str) -> None:
    """Raise ``InvalidInputError`` if a query calls a function that could leave its graph.

    >>> check_calls("MATCH (n:Entity) WHERE n.id = $id RETURN count(n)")
    >>> check_calls("RETURN pg_catalog.version()")
    Traceback (most recent call last):
    holdfast.values.errors.InvalidInputError: query: calls 'pg_catalog.version': ...
    """
    before: list[tuple[str, str]] = [("other", "")] * 3
    for found in _TOKEN.finditer(text):
        kind, token = str(found.lastgroup), found[0]
        if kind == "space":
            continue
        if kind == "open":
            raise InvalidInputError("query", f"has a {token} that is never closed")
        if token == "(":  # noqa: S105 - a parenthesis
            _check_call(before)
        before = [*before[1:], (kind, token)]


def _check_call(before: list[tuple[str, str]]) -> None:
    """Raise unless the tokens before a parenthesis are no name, or a word or function of Cypher."""
    (_, owner), (_, dot), (kind, name) = before
    if kind not in {"name", "quoted"}:
        return
    if dot == ".":
        raise _stranger(f"{owner}.{name}")
    if kind == "quoted" or name.lower() not in FUNCTIONS | WORDS:
        raise _stranger(name)


def _stranger(name: str) -> InvalidInputError:
    return InvalidInputError(
        "query",
        f"calls {name[:80]!r}: only the functions of Cypher may be called, "
        "since others can see more than this graph",
    )
