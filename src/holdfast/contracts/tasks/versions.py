"""Versions of handlers: which of them a worker has."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.values.checks import check_id, check_list
from holdfast.values.errors import InvalidInputError
from holdfast.values.identity import AgentId

MAX_VERSIONS = 100
"""How many versions of one handler a worker may have."""


def check_versions(versions: object) -> dict[str, list[str]]:
    """Check the versions of handlers that a worker has: a list for each agent.

    >>> check_versions({"writer": ["2", "1"]})
    {'writer': ['2', '1']}
    """
    if versions is None:
        return {}
    if not isinstance(versions, Mapping):
        raise InvalidInputError(
            "versions", f"must be a dict of lists by agent, not {type(versions).__name__}"
        )
    return {str(AgentId.parse(agent)): _checked(known) for agent, known in versions.items()}


def _checked(known: object) -> list[str]:
    found = [
        check_id(f"versions[{at}]", one) for at, one in enumerate(check_list("versions", known))
    ]
    if len(set(found)) < len(found) or not 1 <= len(found) <= MAX_VERSIONS:
        raise InvalidInputError(
            "versions", f"must be 1 to {MAX_VERSIONS} different texts for each agent"
        )
    return found
