"""What the naive models of one test share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


class Shared:
    """The time, and one list of rows per contract."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.tables: dict[str, list[Any]] = {}

    def table(self, name: str) -> list[Any]:
        """The rows of one contract."""
        return self.tables.setdefault(name, [])
