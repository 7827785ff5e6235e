"""An answer that was refused: the page shows it again, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.values.errors import InvalidInputError

PROBLEM = "holdfast.studio.problem"
"""Key of the ``Problem`` in a request's scope."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Which task the answer is for, what was wrong, and what was typed.

    ::

        request.scope[PROBLEM] = Problem(task_id, error, desk.form(request))
    """

    task_id: str
    error: InvalidInputError
    form: Mapping[str, str]
