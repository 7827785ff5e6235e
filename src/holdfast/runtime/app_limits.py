"""The limits that an app gives to the claims of its workers."""

from __future__ import annotations

from holdfast.values.errors import InvalidInputError
from holdfast.values.identity import AgentId
from holdfast.values.tasks.limits import Limit


def limits_of(
    agent: AgentId | None,
    *,
    concurrency: int | None,
    rate: str | None,
    key_concurrency: int | None = None,
    key_rate: str | None = None,
) -> tuple[Limit, ...]:
    """Return the limits of an agent, or of each tenant if ``agent`` is ``None``; empty by default.

    >>> limits_of(AgentId("", "writer"), concurrency=5, rate=None)[0].concurrency
    5
    """
    found = []
    if concurrency is not None or rate is not None:
        found.append(Limit(agent, concurrency=concurrency, rate=rate))
    if key_concurrency is not None or key_rate is not None:
        try:
            found.append(Limit(agent, concurrency=key_concurrency, rate=key_rate, per_key=True))
        except InvalidInputError as error:
            problem = str(error).removeprefix(f"{error.field}: ")
            raise InvalidInputError(f"key_{error.field}", problem) from None
    return tuple(found)
