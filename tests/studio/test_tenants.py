"""``?tenant=``: only the operator of this machine looks at other tenants."""

from __future__ import annotations

import httpx
import pytest

from holdfast import ChatMessage, State
from holdfast.errors import NotSupportedError
from holdfast.studio.access import Access
from holdfast.values.ids import new_ref
from tests.studio.visiting import BASE, Visitor, token_of

pytestmark = pytest.mark.asyncio


async def _switch(visitor: Visitor, path: str) -> httpx.Response:
    """Follow a link with a tenant, and keep the cookie that it sets in place of the old one."""
    sent = await visitor.get(path)
    visitor.client.cookies = httpx.Cookies({"holdfast": sent.cookies["holdfast"]})
    return sent


async def test_the_operator_of_this_machine_goes_to_another_tenant_and_back(state: State) -> None:
    other = state.for_tenant(new_ref())
    await state.tasks.submit("writer", ChatMessage.user("ours"))
    await other.tasks.submit("writer", ChatMessage.user("theirs"))
    async with Visitor(state) as visitor:
        moved = await _switch(visitor, f"/studio/tasks?agent=writer&tenant={other.tenant}")
        assert moved.status_code == 303
        assert moved.headers["location"] == "/studio/tasks?agent=writer"
        page = await visitor.page("/studio/tasks")
        assert ("theirs" in page, "ours" in page) == (True, False)
        await _switch(visitor, f"/studio?tenant={state.tenant}")
        page = await visitor.page("/studio/tasks")
        assert ("theirs" in page, "ours" in page) == (False, True)


async def test_a_form_of_one_tenant_changes_nothing_in_the_next(state: State) -> None:
    other = state.for_tenant(new_ref())
    async with Visitor(state) as visitor:
        before = token_of(await visitor.page("/studio"))
        await _switch(visitor, f"/studio?tenant={other.tenant}")
        assert token_of(await visitor.page("/studio")) != before
        fields = {"csrf": before, "do": "submit", "agent": "writer", "text": "hello"}
        sent = await visitor.client.post("/studio/tasks", data=fields, headers={"Origin": BASE})
        assert sent.status_code == 403
    assert not (await other.tasks.list()).tasks


@pytest.mark.parametrize("tenant", ["", "a\x00b", "x" * 5000, "holdfast.x"])
async def test_a_tenant_that_cannot_be_is_refused(state: State, tenant: str) -> None:
    async with Visitor(state) as visitor:
        sent = await visitor.client.get("/studio", params={"tenant": tenant})
        assert sent.status_code in {303, 422}
        if sent.status_code == 303:
            assert (await visitor.get("/studio")).status_code in {200, 422}


@pytest.mark.parametrize("owner", [None, "ana"])
async def test_a_session_of_a_key_stays_in_its_tenant(state: State, owner: str | None) -> None:
    other = state.for_tenant(new_ref())
    await other.tasks.submit("writer", ChatMessage.user("theirs"))
    session = Access().open(state.tenant, owner=owner, key_id="k1")
    async with Visitor(state, session) as visitor:
        sent = await visitor.get(f"/studio/tasks?tenant={other.tenant}")
        assert sent.status_code == 403
        assert "set-cookie" not in sent.headers
        assert "theirs" not in await visitor.page("/studio/tasks")
        assert 'name="tenant"' not in await visitor.page("/studio")


async def test_the_operator_of_this_machine_finds_the_tenants(state: State) -> None:
    other = state.for_tenant(new_ref())
    await other.short_term.set_state("s1", {"a": 1})
    looked_at = state.for_tenant(new_ref())
    assert await looked_at.short_term.get_state("s1") == {}
    found = await state.ops.tenants(limit=1000)
    assert found == sorted(found)
    assert other.tenant in found
    assert looked_at.tenant not in found
    at = found.index(other.tenant)
    assert (await state.ops.tenants(after=other.tenant, limit=1000)) == found[at + 1 :]
    before = found[at - 1] if at else ""
    assert (await state.ops.tenants(after=before, limit=1)) == [other.tenant]
    async with Visitor(state) as visitor:
        page = await visitor.page(f"/studio/tenants?after={before}")
        assert f"/studio?tenant={other.tenant}" in page


async def test_nobody_else_learns_of_other_tenants(state: State) -> None:
    other = state.for_tenant(new_ref())
    await other.tasks.submit("writer", ChatMessage.user("theirs"))
    with pytest.raises(NotSupportedError):
        await state.for_owner("ana").ops.tenants()
    async with Visitor.owner(state, "ana") as visitor:
        assert (await visitor.get("/studio/tenants")).status_code == 404
    by_key = Access().open(state.tenant, key_id="k1")
    async with Visitor(state, by_key) as visitor:
        page = await visitor.page("/studio/tenants")
        assert other.tenant not in page
        assert state.tenant in page
