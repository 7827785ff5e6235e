"""The parts of an agent card that describe an app and its handlers: provider, skills, modes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.values.checks import check_list, check_text
from holdfast.values.errors import InvalidInputError

MODES = ("text/plain", "application/json", "application/octet-stream")
"""Default media types that an app accepts and returns."""

_MEDIA_TYPE = re.compile(r"\*/\*|[\w!#$&^.+-]+/(\*|[\w!#$&^.+-]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Provider:
    """The organization that runs an agent, for its card.

    >>> Provider("Acme", "https://acme.example").organization
    'Acme'
    """

    organization: str
    url: str

    def __post_init__(self) -> None:
        for field, value in (("organization", self.organization), ("url", self.url)):
            if not check_text(f"provider.{field}", value):
                raise InvalidInputError(f"provider.{field}", "must not be empty")


@dataclass(frozen=True, slots=True)
class Skill:
    """The card's entry for one handler.

    Empty ``input_modes`` and ``output_modes`` default to the app's. A skill that is not ``public``
    is on the extended card only, which needs an API key.

    >>> Skill(tags=["tides"]).tags
    ('tides',)
    """

    tags: Sequence[str] = ("durable",)
    examples: Sequence[str] = ()
    input_modes: Sequence[str] = ()
    output_modes: Sequence[str] = ()
    public: bool = True

    def __post_init__(self) -> None:
        if not self.tags:
            raise InvalidInputError("tags", "must not be empty: A2A requires at least one tag")
        for field in ("tags", "examples"):
            object.__setattr__(self, field, check_texts(field, getattr(self, field)))
        for field in ("input_modes", "output_modes"):
            object.__setattr__(self, field, check_modes(field, getattr(self, field)))


def check_texts(field: str, values: object) -> tuple[str, ...]:
    """Return the values as a tuple; raise ``InvalidInputError`` unless they are a list of texts.

    >>> check_texts("tags", ["tides", "moon"])
    ('tides', 'moon')
    """
    return tuple(
        check_text(f"{field}[{at}]", one) for at, one in enumerate(check_list(field, values))
    )


def check_modes(field: str, values: object) -> tuple[str, ...]:
    """Return the values as a tuple; raise ``InvalidInputError`` unless all are media types.

    >>> check_modes("input_modes", ["text/plain", "image/*"])
    ('text/plain', 'image/*')
    """
    modes = check_texts(field, values)
    for at, mode in enumerate(modes):
        if not _MEDIA_TYPE.fullmatch(mode):
            raise InvalidInputError(
                f"{field}[{at}]", f"must be a media type such as text/plain, not {mode!r}"
            )
    return modes
