"""SQL functions change their signature only under a new name."""

from __future__ import annotations

import pytest

from holdfast.engines.postgres import migrate
from tests.engines.postgres_database import connected, empty_database
from tests.upgrade.making import FOLDER, SIGNATURES

pytestmark = pytest.mark.asyncio(loop_scope="session")
LANDED = sorted(FOLDER.glob("functions_*.txt"))


async def test_every_function_of_a_landed_version_keeps_its_signature() -> None:
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        today = {row[0] for row in await connection.fetch(SIGNATURES)}
    assert [file.name for file in LANDED] == ["functions_0020.txt"]
    for file in LANDED:
        lines = file.read_text(encoding="utf-8").splitlines()
        assert len(lines) > 80
        changed = [line for line in lines if line not in today]
        assert changed == [], (
            f"processes of the version of {file.name} call these: leave them as they are, give the "
            "new signature a new name, and keep the old one in functions/earlier_names.sql"
        )


async def test_a_name_that_a_landed_version_calls_has_one_meaning() -> None:
    """A second function of the same name makes calls with untyped arguments ambiguous."""
    async with empty_database() as url, connected(url) as connection:
        await migrate.migrate(connection)
        names = [row[0].partition("(")[0] for row in await connection.fetch(SIGNATURES)]
    assert [name for name in sorted(set(names)) if names.count(name) > 1] == []
