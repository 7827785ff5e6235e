"""The page of API keys: a form that is sent again makes no second key."""

from __future__ import annotations

import asyncio
import re

import pytest

from holdfast import State
from holdfast.studio.screens import sent_forms
from tests.studio.visiting import Visitor

pytestmark = pytest.mark.asyncio
PATH = "/studio/keys"


async def _token(visitor: Visitor) -> str:
    found = re.search(r'name="submit_key" value="([^"]+)"', await visitor.page(PATH))
    assert found
    return found[1]


async def test_a_form_that_is_sent_again_makes_no_second_key(state: State) -> None:
    async with Visitor(state) as visitor:
        fields = {"owner": "ana", "name": "laptop", "submit_key": await _token(visitor)}
        first = await visitor.send(PATH, "create", **fields)
        assert "shown this once" in first.text
        [key] = await state.keys.list_keys()
        again = await visitor.send(PATH, "create", **fields)
        assert (again.status_code, again.headers["location"]) == (303, f"{PATH}?repeated={key.id}")
        page = await visitor.page(again.headers["location"])
        assert "This form was sent before" in page
        assert "keytext" not in page
        assert [one.id for one in await state.keys.list_keys()] == [key.id]
        await visitor.send(PATH, "create", **{**fields, "submit_key": await _token(visitor)})
        assert len(await state.keys.list_keys()) == 2


async def test_a_form_that_is_sent_many_times_at_once_makes_one_key(state: State) -> None:
    async with Visitor(state) as visitor:
        fields = {"owner": "ana", "submit_key": await _token(visitor)}
        sent = await asyncio.gather(*(visitor.send(PATH, "create", **fields) for _ in range(5)))
        assert sorted(one.status_code for one in sent) == [200, 303, 303, 303, 303]
        assert len(await state.keys.list_keys()) == 1
        unfinished = await visitor.page(f"{PATH}?repeated={sent_forms.UNKNOWN}")
        assert "No second key was made" in unfinished


async def test_a_form_that_was_refused_can_be_mended_and_sent(state: State) -> None:
    async with Visitor(state) as visitor:
        fields = {"owner": "ana", "submit_key": await _token(visitor)}
        refused = await visitor.send(PATH, "create", **fields, days="x")
        assert refused.status_code == 422
        sent = await visitor.send(PATH, "create", **fields, days="3")
        assert "shown this once" in sent.text


@pytest.mark.parametrize("word", ["none", "<b>", "pay us"])
async def test_a_link_cannot_say_that_a_key_was_made(state: State, word: str) -> None:
    async with Visitor(state) as visitor:
        assert "sent before" not in await visitor.page(f"{PATH}?repeated={word}")
