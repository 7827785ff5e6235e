"""What the guard of Studio refuses, and the headers that every response has."""

from __future__ import annotations

import httpx
import pytest

from holdfast import ChatMessage, State
from holdfast.studio.access import Access
from holdfast.studio.app import SCREENS, studio
from tests.studio.visiting import BASE, HOSTS, Visitor, token_of

pytestmark = pytest.mark.asyncio
PAGES = [screen.path for screen in SCREENS if "{" not in screen.path and screen.path[8:] != "live"]


@pytest.mark.parametrize("path", ["/studio", "/studio/tasks/t1", "/studio/live", "/studio/no"])
async def test_without_a_session_nothing_is_shown(state: State, path: str) -> None:
    async with Visitor(state) as visitor:
        visitor.client.cookies.clear()
        response = await visitor.get(path)
    assert response.status_code == 401
    assert "holdfast studio" in response.text


async def test_a_link_logs_in_and_leaves_the_address(state: State) -> None:
    async with Visitor(state) as visitor:
        visitor.client.cookies.clear()
        link = f"/studio/login?token={visitor.access.link(state.tenant)}"
        response = await visitor.get(link)
        assert response.status_code == 303
        assert response.headers["location"] == "/studio"
        cookie = response.headers["set-cookie"].lower()
        for flag in ("httponly", "samesite=strict", "path=/studio", "max-age=43200"):
            assert flag in cookie
        assert (await visitor.get("/studio")).status_code == 200
        again = await visitor.get(link)
    assert again.status_code == 403
    assert "used already" in again.text


@pytest.mark.parametrize("path", ["/", "/studio/"])
async def test_an_address_without_the_page_leads_to_the_first_page(state: State, path: str) -> None:
    async with Visitor(state) as visitor:
        visitor.client.cookies.clear()
        response = await visitor.get(path)
    assert (response.status_code, response.headers["location"]) == (303, "/studio")


async def test_a_cookie_over_https_is_secure(state: State) -> None:
    access = Access()
    app = studio(state, access, hosts=HOSTS, secure=True)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        response = await client.get(f"/studio/login?token={access.link(state.tenant)}")
    cookie = response.headers["set-cookie"]
    assert cookie.startswith("__Secure-holdfast=")
    assert "Secure" in cookie


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]"])
async def test_another_host_name_is_refused(state: State, host: str) -> None:
    async with Visitor(state) as visitor:
        response = await visitor.client.get("/studio", headers={"Host": host})
        fixed = await visitor.client.get("/studio/static/studio.css", headers={"Host": host})
    assert (response.status_code, fixed.status_code) == (421, 421)


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
    ],
)
async def test_a_form_of_another_site_is_refused(state: State, headers: dict[str, str]) -> None:
    async with Visitor(state) as visitor:
        data = {"csrf": visitor.token, "do": "submit", "agent": "writer", "text": "hello"}
        response = await visitor.client.post("/studio/tasks", data=data, headers=headers)
    assert response.status_code == 403
    assert (await state.tasks.list(count=True)).total == 0


@pytest.mark.parametrize("token", ["", "wrong", "é"])
async def test_a_form_without_its_token_is_refused(state: State, token: str) -> None:
    async with Visitor(state) as visitor:
        data = {"csrf": token, "do": "submit", "agent": "writer", "text": "hello"}
        response = await visitor.client.post("/studio/tasks", data=data)
    assert response.status_code == 403
    assert (await state.tasks.list(count=True)).total == 0


async def test_the_token_of_another_session_is_refused(state: State) -> None:
    async with Visitor(state) as visitor:
        other = visitor.access.form_token(visitor.access.open(state.tenant))
        data = {"csrf": other, "do": "submit", "agent": "writer", "text": "hello"}
        response = await visitor.client.post("/studio/tasks", data=data)
    assert response.status_code == 403


async def test_an_enormous_form_is_refused(state: State) -> None:
    async with Visitor(state) as visitor:
        response = await visitor.send("/studio/tasks", "submit", agent="w", text="x" * (1 << 20))
    assert response.status_code == 413


@pytest.mark.parametrize("path", [*PAGES, "/studio/no-such-page", "/studio/static/studio.js"])
async def test_every_response_has_the_headers(state: State, path: str) -> None:
    async with Visitor(state) as visitor:
        response = await visitor.get(path)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["cross-origin-opener-policy"] == "same-origin"
    expected = "no-cache" if "static" in path else "no-store"
    assert response.headers["cache-control"] == expected


@pytest.mark.parametrize("path", PAGES)
async def test_read_only_takes_no_form(state: State, path: str) -> None:
    async with Visitor(state, read_only=True) as visitor:
        assert 'method="post"' not in await visitor.page(path)
        response = await visitor.send(path, "submit", agent="writer", text="hello")
    assert response.status_code == 405
    assert (await state.tasks.list(count=True)).total == 0


async def test_a_reader_may_only_read(state: State) -> None:
    async with Visitor.owner(state, "ana", writes=False) as visitor:
        assert 'method="post"' not in await visitor.page("/studio/tasks")
        response = await visitor.send("/studio/tasks", "submit", agent="writer", text="hello")
    assert response.status_code == 403
    assert (await state.tasks.list(count=True)).total == 0


async def test_a_session_of_a_revoked_key_ends(state: State) -> None:
    access = Access()
    valid = True

    async def still(_session: object) -> bool:
        return valid

    app = studio(state, access, hosts=HOSTS, valid=still)
    cookie = access.seal(access.open(state.tenant, owner="ana", key_id="k1"))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(
        transport=transport, base_url=BASE, cookies={"holdfast": cookie}
    ) as client:
        assert (await client.get("/studio")).status_code == 200
        valid = False
        assert (await client.get("/studio")).status_code == 401


async def test_a_page_carries_the_token_of_its_session(state: State) -> None:
    async with Visitor(state) as visitor:
        assert token_of(await visitor.page("/studio")) == visitor.token


@pytest.mark.parametrize(
    "target", ["https://evil.example", "//evil.example", "/studio\\evil", "/other", "/studiox"]
)
async def test_a_form_goes_back_to_studio_only(state: State, target: str) -> None:
    task = await state.tasks.submit("writer", ChatMessage.user("hello"))
    async with Visitor(state) as visitor:
        response = await visitor.send(f"/studio/tasks/{task.id}", "pause", back=target)
    assert response.status_code == 303
    assert response.headers["location"] == f"/studio/tasks/{task.id}"


async def test_an_unknown_action_is_refused(state: State) -> None:
    async with Visitor(state) as visitor:
        response = await visitor.send("/studio/tasks", "explode")
    assert response.status_code == 404


async def test_a_form_with_too_many_fields_is_refused(state: State) -> None:
    async with Visitor(state) as visitor:
        fields = {f"f{at}": "" for at in range(200)}
        response = await visitor.send("/studio/tasks", "submit", **fields)
    assert response.status_code == 413


async def test_a_session_without_a_key_is_none_where_keys_are_asked_for(state: State) -> None:
    access = Access()

    async def login(_text: str) -> None:
        return None

    app = studio(state, access, hosts=HOSTS, login=login)
    cookies = {"holdfast": access.seal(access.open(state.tenant))}
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, cookies=cookies) as client:
        assert (await client.get("/studio/keys")).status_code == 401


async def test_characters_that_join_letters_stay_in_forms(state: State) -> None:
    text = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    await state.long_term.save("planner", text)
    async with Visitor(state) as visitor:
        page = await visitor.page("/studio/facts?agent=planner")
    assert f">{text}</textarea>" in page
