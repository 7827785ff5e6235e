"""Versions of states on Postgres."""

from __future__ import annotations

import pytest

from holdfast.contracts.short_term import States
from holdfast.engines.postgres.engine import Postgres
from holdfast.engines.postgres.short_term import PostgresStates
from tests.engines.postgres_database import as_keeper, empty_database

pytestmark = pytest.mark.asyncio(loop_scope="session")
FAR = 1 << 60


async def test_a_version_tells_nothing_of_other_states_and_is_never_used_again() -> None:
    async with empty_database() as url:
        engine = await Postgres.open(url)
        mine, other = (States(PostgresStates(engine, tenant=name)) for name in ("acme", "globex"))
        await mine.set_state("s1", {"a": 1})
        async with as_keeper(engine) as connection:
            await connection.execute("UPDATE holdfast.states SET version = $1", FAR)
        # A clock that is behind the versions, as one that was set back.
        for _ in range(5):
            await other.set_state("s1", {"a": 1})
        seen = [await mine.update_state("s1", {"a": at}) for at in range(2)]
        seen.append(await mine.set_state("s1", {}, expected_version=seen[-1]))
        assert seen == [FAR + 1, FAR + 2, FAR + 3]
        used = [(await other.snapshot("s1")).version]
        for _ in range(3):
            await other.clear("s1")
            used.append(await other.set_state("s1", {"a": 1}))
        assert used == sorted(set(used))
        async with as_keeper(engine) as connection:
            shared = "SELECT is_called FROM holdfast.state_versions"
            assert await connection.fetchval(shared) is False
        await engine.aclose()
