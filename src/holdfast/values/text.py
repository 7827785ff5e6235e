"""The tokeniser: converts text to the lexemes that every engine indexes and looks up.

Words are runs of letters, marks and digits, after NFKC and case folding: ``ﬁ`` is ``fi``. An
underscore ends a word, so that ``user_id`` is found by ``user``; an apostrophe inside a word does
not. A symbol such as an emoji is one word. Every other character separates words.

Scripts without spaces between words (Han, kana, Thai, Lao, Burmese, Khmer), and Hangul, whose
endings are part of the word, cannot be split into words: a run of them gives each of its characters
and each pair of adjacent characters. A pair is rarer than a character, so that it weighs more in a
ranking; the single
characters find words of one character.
"""

from __future__ import annotations

import itertools
import re
import threading
import unicodedata
from collections.abc import Iterator

import Stemmer

from holdfast.values.errors import InvalidInputError
from holdfast.values.sealed import SEALED_TEXT

MAX_NAME_WORDS = 6
LANGUAGES: tuple[str, ...] = tuple(sorted(Stemmer.algorithms()))

# Words that occur in every second sentence and do not describe it. Negations are among them: a bag
# of words does not show what they negate.
_ENGLISH = """
a about above after again against all also am an and any are aren't as at be because been before
being below between both but by can can't cannot could couldn't d did didn't do does doesn't doing
don't down during each few for from further had hadn't has hasn't have haven't having he he'd he'll
he's her here here's hers herself him himself his how how's i i'd i'll i'm i've if in into is isn't
it it'd it'll it's its itself just let's ll m me more most mustn't my myself no nor not now of off
on once only or other our ours ourselves out over own re s same shan't she she'd she'll she's should
shouldn't so some such t than that that's the their theirs them themselves then there there's these
they they'd they'll they're they've this those through to too under until up ve very was wasn't we
we'd we'll we're we've were weren't what what's when when's where where's which while who who's whom
why why's will with won't would wouldn't you you'd you'll you're you've your yours yourself
yourselves
"""
STOP_WORDS: dict[str, frozenset[str]] = {"english": frozenset(_ENGLISH.split())}

# For a text whose separators are already spaces.
_WORDS = re.compile(r"[^ ']+(?:'[^ ']+)*")
_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uac00-\ud7af"  # Hangul
)
_RUNS = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_UNSPACED_AT = re.compile(f"[{_UNSPACED}]")
_APOSTROPHES = frozenset("'\u2018\u2019\u02bc")


MAX_LEXEME = 64
"""How many characters of a word are used: databases limit the size of an index entry."""


class _Separators(dict[int, str]):
    """Maps each character to its replacement before a text is split at spaces, on first use."""

    def __missing__(self, point: int) -> str:
        char = chr(point)
        kind = unicodedata.category(char)
        if char in _APOSTROPHES:
            kept = "'"
        elif kind == "Cf" or 0xFE00 <= point <= 0xFE0F or 0xE0100 <= point <= 0xE01EF:
            # Joiners, direction marks and variation selectors occur inside words and emoji.
            kept = ""
        elif kind[0] in "LNM":
            kept = char
        else:
            kept = f" {char} " if kind == "So" else " "
        self[point] = kept
        return kept


_separators = _Separators()
_of_thread = threading.local()


def tokenize(text: str, *, language: str = "english") -> list[str]:
    """Return the lexemes of a text, in order, with repeats: folded, without stop words, stemmed.

    The language chooses the Snowball stemmer and, for English, the stop words.

    >>> tokenize("The tides were RISING at St_Malo")
    ['tide', 'rise', 'st', 'malo']
    >>> tokenize("低い潮")
    ['低', 'い', '潮', '低い', 'い潮']
    """
    if text.startswith(SEALED_TEXT):
        # A sealed text has its words behind it, as digests.
        return text.split()[1:]
    stemmer = _stemmer(language)
    stop = STOP_WORDS.get(language, frozenset())
    words = [word for word in _words(text) if word not in stop]
    if language != "english":
        # Snowball's English handles the apostrophe; in other languages it separates words, as in
        # l'homme.
        words = [part for word in words for part in word.split("'")]
    return [lexeme[:MAX_LEXEME] for lexeme in stemmer.stemWords(words) if lexeme]


def check_language(field: str, language: object) -> str:
    """Check a language of the tokeniser.

    >>> check_language("language", "french")
    'french'
    """
    if language not in LANGUAGES or not isinstance(language, str):
        raise InvalidInputError(field, f"unknown {language!r}: known are {', '.join(LANGUAGES)}")
    return language


def name_key(name: str) -> str:
    """Return the lookup key of a name: its case-folded words without stemming, joined by spaces.

    >>> name_key("Project-X") == name_key("project x")
    True
    """
    return " ".join(_name_words(name))


def names_in(text: str) -> list[str]:
    """Return the keys of all names of up to six words that a text may contain, each once.

    >>> names_in("Ravi's team")
    ['ravi', 'ravi s', 'ravi s team', 's', 's team', 'team']
    """
    words = _name_words(text)
    spans = (
        " ".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, min(start + MAX_NAME_WORDS, len(words)) + 1)
    )
    return list(dict.fromkeys(spans))


def _name_words(text: str) -> list[str]:
    # An ideograph counts as a word here, so that a name is found inside a run.
    return [
        part
        for word in _separated(text).replace("'", " ").split()
        for run in _RUNS.findall(word)
        for part in (run if _UNSPACED_AT.match(run) else [run])
    ]


def _separated(text: str) -> str:
    if text.isascii():
        return text.lower().translate(_separators)
    # Normalised twice: case folding undoes some compositions.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.translate(_separators)


def _words(text: str) -> Iterator[str]:
    for word in _WORDS.findall(_separated(text)):
        if word.isascii() or _UNSPACED_AT.search(word) is None:
            yield word
            continue
        for run in _RUNS.findall(word.replace("'", "")):
            if _UNSPACED_AT.match(run) is None:
                yield run
            else:
                yield from run
                yield from map("".join, itertools.pairwise(run))


def _stemmer(language: str) -> Stemmer.Stemmer:
    # A stemmer has a cache without a lock, so two threads must not share it.
    stemmers: dict[str, Stemmer.Stemmer] = _of_thread.__dict__
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(check_language("language", language))
    return stemmers[language]
