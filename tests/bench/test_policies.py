"""The rows of ``holdfast bench stores`` on row level security compare what they say."""

from __future__ import annotations

import pytest

from holdfast.bench import policies
from holdfast.bench.servers import fetch, postgres
from holdfast.bench.suites import STEPS

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFINED = (
    "SELECT count(*) FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace AND relrowsecurity"
)


async def test_calls_are_measured_with_policies_and_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policies, "CALLS", 10)
    steps: list[str] = []
    async with postgres() as url:
        found = await policies.run(url, steps.append, quick=True)
        confined = {
            name: (await fetch(url.replace("/postgres?", f"/{name}?", 1), CONFINED))[0][0]
            for name in ("policies", "policies_again", "no_policies")
        }
    assert [one.name for one in found] == list(policies.CASES)
    assert confined["policies"] == confined["policies_again"] > 40
    assert confined["no_policies"] == 0
    assert len(steps) < STEPS["stores"]
    assert all(one.on_us > 0 and one.off_us > 0 for one in found)
