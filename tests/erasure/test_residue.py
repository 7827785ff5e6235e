"""After an erasure and a scrub, no file of any server has the bytes of what was erased."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import State
from holdfast.values.ids import new_ref
from holdfast.wiring.admin import Administration
from tests.erasure.residue import STORES, WRITER, Servers, canary, fill_content

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _fill(state: State, words: dict[str, str]) -> None:
    await fill_content(state, words)
    await state.keys.create(words["api key"])


async def test_an_erasure_and_a_scrub_leave_no_bytes(servers: Servers) -> None:
    tenant, words = new_ref(), {store: canary() for store in STORES}
    other = {store: canary() for store in STORES}
    async with holdfast.open(settings=servers.settings, tenant=tenant) as state:
        neighbour = state.for_tenant(new_ref())
        await _fill(neighbour, other)
        await _fill(state, words)
        # What is looked for after the erasure was there to be found before.
        before = await servers.found(words)
        assert set(before) == set(STORES), set(STORES) - set(before)
        await state.erase(tenant=tenant)
        assert (await neighbour.short_term.get_state("s1")) == {"who": other["state"]}
        # Rows are gone, their bytes are not.
        assert await servers.found(words) != {}
        admin = await Administration.open(servers.settings)
        try:
            for job in (admin.jobs() | admin.scrub_jobs()).values():
                await job()
        finally:
            await admin.aclose()
        assert await servers.found(words) == {}
        # What was not erased is still there, to read and in the files.
        assert len(await neighbour.history.get_messages(WRITER, session_id="s1")) == 1
        assert set(await servers.found(other)) == set(STORES)
