"""How long sessions and ended tasks are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from holdfast.values.errors import InvalidInputError

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_RULE = re.compile(r"(sessions|tasks)=([1-9][0-9]{0,4})([hdw])")


@dataclass(frozen=True, slots=True)
class Retention:
    """How old sessions and ended tasks may become before they are deleted; ``None`` keeps all.

    >>> Retention.parse(["sessions=90d", "tasks=2w"]).tasks
    datetime.timedelta(days=14)
    """

    sessions: timedelta | None = None
    """The age of a session is that of its newest event, and of its working state."""

    tasks: timedelta | None = None
    """The age of a task counts from its end."""

    tenant: str | None = None
    """Applies to this tenant only; ``None`` means all tenants."""

    dry_run: bool = False

    @classmethod
    def parse(
        cls, rules: Iterable[str], *, tenant: str | None = None, dry_run: bool = False
    ) -> Retention:
        """Parse rules such as ``sessions=90d``: a number of hours (h), days (d) or weeks (w).

        >>> Retention.parse(["sessions=90"])
        Traceback (most recent call last):
        ...
        holdfast.values.errors.InvalidInputError: retain: must be sessions=90d or tasks=30d, with \
a number of h, d or w, not 'sessions=90'
        """
        found: dict[str, timedelta] = {}
        for rule in rules:
            read = _RULE.fullmatch(rule)
            if read is None:
                raise InvalidInputError(
                    "retain",
                    f"must be sessions=90d or tasks=30d, with a number of h, d or w, not {rule!r}",
                )
            what, count, unit = read.groups()
            if what in found:
                raise InvalidInputError("retain", f"names {what} twice: give one age")
            found[what] = timedelta(**{_UNITS[unit]: int(count)})
        return cls(**found, tenant=tenant, dry_run=dry_run)
