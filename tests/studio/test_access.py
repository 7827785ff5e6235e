"""Login links, session cookies and form tokens."""

from __future__ import annotations

import base64

import pytest

from holdfast.studio.access import LINK_SECONDS, SESSION_SECONDS, Access


class Clock:
    """A clock that a test sets."""

    now = 1_000_000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def test_a_link_works_once() -> None:
    access = Access()
    token = access.link("acme")
    session = access.redeem(token)
    assert session is not None
    assert (session.tenant, session.owner, session.local) == ("acme", None, True)
    assert access.redeem(token) is None


def test_a_link_works_for_five_minutes() -> None:
    clock = Clock()
    access = Access(clock=clock)
    early, late = access.link("acme"), access.link("acme")
    clock.now += LINK_SECONDS - 1
    assert access.redeem(early) is not None
    clock.now += 1
    assert access.redeem(late) is None


def test_only_so_many_links_wait() -> None:
    access = Access()
    first, *others = [access.link("acme") for _ in range(101)]
    assert access.redeem(first) is None
    assert access.redeem(others[0]) is not None


@pytest.mark.parametrize("token", ["", "x", "é", "\udcff", "a" * 100_000])
def test_a_token_that_nobody_made_opens_nothing(token: str) -> None:
    assert Access().redeem(token) is None


def test_a_cookie_holds_its_session_until_it_ends() -> None:
    clock = Clock()
    access = Access(clock=clock)
    session = access.open("acme", owner="ana", key_id="k1", writes=False)
    cookie = access.seal(session)
    assert access.unseal(cookie) == session
    clock.now += SESSION_SECONDS
    assert access.unseal(cookie) is None


def test_a_cookie_cannot_be_changed() -> None:
    access = Access()
    cookie = access.seal(access.open("acme", owner="ana", key_id="k1"))
    text, _, signature = cookie.partition(".")
    known = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    forged = base64.urlsafe_b64encode(known.replace(b"ana", b"bob")).decode().rstrip("=")
    assert access.unseal(f"{forged}.{signature}") is None
    assert access.unseal(f"{forged}.{access.form_token(access.open('acme'))}") is None
    assert access.unseal(cookie[:-1]) is None
    assert access.unseal(signature) is None
    assert access.unseal("") is None


def test_a_cookie_of_another_secret_is_not_accepted() -> None:
    cookie = Access().seal(Access().open("acme"))
    assert Access().unseal(cookie) is None
    shared = b"s" * 32
    assert Access(shared).unseal(Access(shared).seal(Access(shared).open("acme"))) is not None


def test_a_form_token_belongs_to_one_session() -> None:
    access = Access()
    mine, other = access.open("acme"), access.open("acme")
    assert access.holds(mine, access.form_token(mine))
    assert not access.holds(other, access.form_token(mine))
    assert not access.holds(mine, "")
    assert not access.holds(mine, "\udcff")
