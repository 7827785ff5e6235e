"""Input that breaks stores: more than 120 values, and what must become of each.

Every value is either kept, and comes back exactly as it went in, or refused with a typed error
that names the field, with nothing written: the same on every engine.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any


class Verdict(enum.Enum):
    """What must become of a value."""

    KEPT = "kept"
    REFUSED = "refused"


KEPT, REFUSED = Verdict.KEPT, Verdict.REFUSED


@dataclass(frozen=True)
class Hostile:
    """A value, and the verdict on it as what it claims to be."""

    name: str
    value: Any
    verdict: Verdict


@dataclass(frozen=True)
class HostileText(Hostile):
    """Text has two verdicts: ``verdict`` as free text, ``as_id`` as an id."""

    as_id: Verdict


def _text(name: str, value: Any, *, id: Verdict = KEPT, text: Verdict = KEPT) -> HostileText:
    return HostileText(name, value, text, id)


TEXTS: tuple[HostileText, ...] = (
    _text("empty", "", id=REFUSED),
    _text("one space", " "),
    _text("spaces around", "  a  "),
    _text("single quote", "it's"),
    _text("double quote", 'say "no"'),
    _text("back quote", "`id`"),
    _text("backslash", "a\\b"),
    _text("trailing backslash", "a\\"),
    _text("backslash n", "a\\nb"),
    _text("dollar quote", "$$"),
    _text("tagged dollar quote", "$holdfast$ x $holdfast$"),
    _text("parameter", "$1"),
    _text("named parameter", ":name"),
    _text("percent s", "%s"),
    _text("percent parameter", "%(name)s"),
    _text("format field", "{0.__class__}"),
    _text("empty braces", "{}"),
    _text("hash tag", "{s07}"),
    _text("colon", "a:b"),
    _text("many separators", "a:b{c}*d"),
    _text("star", "*"),
    _text("glob", "[a-z]?*"),
    _text("like wildcards", "%_%"),
    _text("sql comment", "x;-- "),
    _text("sql injection", "'; DROP TABLE holdfast.events; --"),
    _text("sql union", "' UNION SELECT 1 --"),
    _text("sql block comment", "/* x */"),
    _text("cypher injection", "X {a:1}) DETACH DELETE n //"),
    _text("redis protocol", "*1\\r\\n$8\\r\\nFLUSHALL"),
    _text("lua", "redis.call('FLUSHALL')"),
    _text("python", "__import__('os').system('true')"),
    _text("template", "{{7*7}}"),
    _text("shell", "$(id); `id`"),
    _text("parent folder", "../../etc/passwd"),
    _text("absolute path", "/etc/passwd"),
    _text("windows path", "C:\\con\\nul"),
    _text("dot", "."),
    _text("two dots", ".."),
    _text("slash", "/"),
    _text("slash at the start", "/a"),
    _text("slash at the end", "a/"),
    _text("three parts", "a/b/c"),
    _text("reserved name", "what is holdfast.sealed?"),
    _text("url", "http://127.0.0.1:1/x?y=z#f"),
    _text("encoded slash", "a%2Fb"),
    _text("encoded zero", "a%00b"),
    _text("json text", '{"type":"text"}'),
    _text("json null", "null"),
    _text("python none", "None"),
    _text("number as text", "1e400"),
    _text("nan as text", "NaN"),
    _text("escaped zero", "\\u0000"),
    _text("html", "<script>alert(1)</script>"),
    _text("xml entity", "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>"),
    _text("csv formula", "=1+1"),
    _text("dunder", "__proto__"),
    _text("operator key", "$gt"),
    _text("dotted key", "a.b.c"),
    _text("dot at the start", ".a"),
    _text("dot at the end", "a."),
    _text("version key", "v"),
    _text("rtl", "שלום עולם"),
    _text("rtl override", "a\u202eb"),
    _text("arabic", "مرحبا"),
    _text("chinese", "记忆"),
    _text("emoji", "🦀"),
    _text("emoji sequence", "👩‍👩‍👧‍👦"),
    _text("flag", "🇪🇺"),
    _text("zero width", "a\u200bb"),
    _text("zero width joiner", "\u200d"),
    _text("byte order mark", "\ufeffa"),
    _text("combining, composed", "é"),
    _text("combining, decomposed", "e\u0301"),
    _text("zalgo", "a" + "\u0301" * 50),
    _text("long s", "ſ"),
    _text("sharp s", "Straße"),
    _text("dotless i", "ı"),
    _text("dotted capital i", "İ"),
    _text("ligature", "ﬁ"),
    _text("fullwidth", "Ａ"),
    _text("line separator", "a\u2028b"),
    _text("paragraph separator", "a\u2029b"),
    _text("no-break space", "\u00a0"),
    _text("noncharacter", "\uffff"),
    _text("private use", "\ue000"),
    _text("last code point", "\U0010ffff"),
    _text("newline", "a\nb", id=REFUSED),
    _text("carriage return", "a\r\nb", id=REFUSED),
    _text("tab", "a\tb", id=REFUSED),
    _text("zero", "a\x00b", id=REFUSED),
    _text("only zero", "\x00", id=REFUSED),
    _text("bell", "\x07", id=REFUSED),
    _text("escape", "\x1b[31m", id=REFUSED),
    _text("delete", "\x7f", id=REFUSED),
    _text("next line", "a\x85b", id=REFUSED),
    _text("512 bytes", "a" * 512),
    _text("513 bytes", "a" * 513, id=REFUSED),
    _text("512 bytes of emoji", "🦀" * 128),
    _text("513 characters of emoji", "🦀" * 513, id=REFUSED),
    _text("10 kB", "x" * 10_000, id=REFUSED),
    _text("1 MB", "y" * 1_000_000, id=REFUSED),
    _text("lone high surrogate", "a\ud800", id=REFUSED, text=REFUSED),
    _text("lone low surrogate", "\udfffb", id=REFUSED, text=REFUSED),
    _text("swapped surrogates", "\udc00\ud800", id=REFUSED, text=REFUSED),
    _text("none", None, id=REFUSED, text=REFUSED),
    _text("a number", 7, id=REFUSED, text=REFUSED),
    _text("bytes", b"abc", id=REFUSED, text=REFUSED),
    _text("a list", ["a"], id=REFUSED, text=REFUSED),
    _text("a dict", {"a": 1}, id=REFUSED, text=REFUSED),
)


def _nested(depth: int, *, key: str = "") -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {key: value} if key else [value]
    return value


def _looped() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


JSON_VALUES: tuple[Hostile, ...] = (
    Hostile("null", None, KEPT),
    Hostile("true", True, KEPT),  # noqa: FBT003 - a value, not a switch
    Hostile("zero", 0, KEPT),
    Hostile("minus zero", -0.0, KEPT),
    Hostile("one as float", 1.0, KEPT),
    Hostile("1e16", 1e16, KEPT),
    Hostile("1e22", 1e22, KEPT),
    Hostile("a third", 1 / 3, KEPT),
    Hostile("largest float", 1.7976931348623157e308, KEPT),
    Hostile("smallest float", 5e-324, KEPT),
    Hostile("largest integer", 2**63 - 1, KEPT),
    Hostile("smallest integer", -(2**63), KEPT),
    Hostile("beyond a double", 2**53 + 1, KEPT),
    Hostile("integer above 64 bits", 2**63, REFUSED),
    Hostile("integer below 64 bits", -(2**63) - 1, REFUSED),
    Hostile("googol", 10**400, REFUSED),
    Hostile("nan", math.nan, REFUSED),
    Hostile("infinity", math.inf, REFUSED),
    Hostile("1e400", float("1e400"), REFUSED),
    Hostile("minus infinity", -math.inf, REFUSED),
    Hostile("empty list", [], KEPT),
    Hostile("empty dict", {}, KEPT),
    Hostile("keys out of order", {"b": 1, "a": {"z": 1, "y": 2}, "10": 0, "9": 0}, KEPT),
    Hostile("empty key", {"": 1}, KEPT),
    Hostile("key with zero", {"a\x00": 1}, KEPT),
    Hostile("keys that differ by case", {"a": 1, "A": 2}, KEPT),
    Hostile("keys that differ by composition", {"é": 1, "e\u0301": 2}, KEPT),
    Hostile("a block's type", {"type": "text", "text": 3}, KEPT),
    Hostile("mixed list", [1, "1", 1.0, None, [], {}], KEPT),
    Hostile("text with zero", "a\x00b", KEPT),
    Hostile("text with line separator", "\u2028", KEPT),
    Hostile("50 levels of lists", _nested(50), KEPT),
    Hostile("50 levels of dicts", _nested(50, key="k"), KEPT),
    Hostile("65 levels", _nested(65), REFUSED),
    Hostile("10,000 levels of lists", _nested(10_000), REFUSED),
    Hostile("10,000 levels of dicts", _nested(10_000, key="k"), REFUSED),
    Hostile("10,000 keys", {f"k{at}": at for at in range(10_000)}, KEPT),
    Hostile("a list in itself", _looped(), REFUSED),
    Hostile("nan inside", {"a": [1, {"b": math.nan}]}, REFUSED),
    Hostile("surrogate inside", {"a": ["\ud800"]}, REFUSED),
    Hostile("surrogate in a key", {"\ud800": 1}, REFUSED),
    Hostile("number as key", {1: 2}, REFUSED),
    Hostile("none as key", {None: 2}, REFUSED),
    Hostile("tuple", (1, 2), REFUSED),
    Hostile("set", {1, 2}, REFUSED),
    Hostile("bytes", b"abc", REFUSED),
    Hostile("complex", 1j, REFUSED),
    Hostile("an object", object(), REFUSED),
    Hostile("a function", len, REFUSED),
    Hostile("a type", int, REFUSED),
)

DIMENSION = 3
"""How many numbers the kept vectors have: a probe prepares its collection with it."""

VECTORS: tuple[Hostile, ...] = (
    Hostile("ones", [1.0, 1.0, 1.0], KEPT),
    Hostile("integers", [1, 0, 0], KEPT),
    Hostile("negative", [-1.0, -1.0, -1.0], KEPT),
    Hostile("minus zero", [-0.0, 1.0, 0.0], KEPT),
    Hostile("small", [1e-10, 0.0, 0.0], KEPT),
    Hostile("large", [1e10, 1e10, 1e10], KEPT),
    Hostile("subnormal beside one", [1e-40, 1.0, 0.0], KEPT),
    Hostile("zero norm", [0.0, 0.0, 0.0], REFUSED),
    Hostile("subnormal", [1e-40, 1e-40, 1e-40], REFUSED),
    Hostile("below 32 bits", [1e-60, 0.0, 0.0], REFUSED),
    Hostile("3e38", [3e38, 3e38, 3e38], REFUSED),
    Hostile("beyond 32 bits", [1e39, 0.0, 0.0], REFUSED),
    Hostile("googol", [10**400, 0, 0], REFUSED),
    Hostile("nan", [math.nan, 1.0, 1.0], REFUSED),
    Hostile("infinity", [math.inf, 1.0, 1.0], REFUSED),
    Hostile("too few", [1.0, 1.0], REFUSED),
    Hostile("too many", [1.0, 1.0, 1.0, 1.0], REFUSED),
    Hostile("empty", [], REFUSED),
    Hostile("text inside", ["1", 1.0, 1.0], REFUSED),
    Hostile("none inside", [None, 1.0, 1.0], REFUSED),
    Hostile("true inside", [True, 1.0, 1.0], REFUSED),
    Hostile("list inside", [[1.0], 1.0, 1.0], REFUSED),
    Hostile("text", "1,1,1", REFUSED),
    Hostile("a number", 1.0, REFUSED),
)
