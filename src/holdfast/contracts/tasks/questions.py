"""Questions whose answers are checked before the task goes on."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.values.checks import check_list, check_text
from holdfast.values.codec import decode_json, encode_json
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError

MAX_OPTIONS = 100
"""How many options a question may have."""


def check_options(options: object) -> str | None:
    """Check the options of a question and return its form; ``None`` without options.

    >>> check_options(["yes", "no"])
    '{"options":["yes","no"]}'
    """
    if options is None:
        return None
    given = [check_text(f"options[{at}]", one) for at, one in enumerate(_listed(options))]
    if not all(one and one == one.strip() for one in given) or len(set(given)) < len(given):
        raise InvalidInputError(
            "options", "must be different texts, not empty, without spaces around them"
        )
    return encode_json({"options": given})


def _listed(options: object) -> Sequence[object]:
    found = check_list("options", options)
    if not 1 <= len(found) <= MAX_OPTIONS:
        raise InvalidInputError("options", f"must be 1 to {MAX_OPTIONS} texts, not {len(found)}")
    return found


def check_answer(form: str, answer: ChatMessage) -> None:
    """Raise ``InvalidInputError`` for an answer that is none of the question's options.

    >>> check_answer('{"options":["yes","no"]}', ChatMessage.user("yes"))
    """
    options = decode_json(form)["options"] if form else []
    if options and answer.text.strip() not in options:
        listed = ", ".join(map(repr, options))
        raise InvalidInputError("message", f"must be one of {listed}, not {answer.text[:80]!r}")
