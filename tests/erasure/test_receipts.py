"""Receipts: what they say, whose they are, and what a change to them breaks."""

from __future__ import annotations

import asyncio
import copy
import json

import pytest

import holdfast
from holdfast import Settings, State
from holdfast.erasure.receipts import ReceiptKey, check_receipts, parse_receipts
from holdfast.errors import ConfigError, InvalidInputError
from holdfast.values.erasure import ErasureScope
from holdfast.values.errors import CodecError
from tests.erasure.conftest import KEY

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _erased(state: State, subject: str) -> dict[str, object]:
    await state.for_owner(subject).short_term.set_state("s1", {"a": 1})
    report = await state.erase(subject=subject)
    assert report.receipt is not None
    return report.receipt


async def test_receipts_are_signed_and_each_names_the_one_before(state: State) -> None:
    receipts = [await _erased(state, name) for name in ("ana", "bob", "eve")]
    key = ReceiptKey(KEY)
    assert [one["number"] for one in receipts] == [1, 2, 3]
    assert check_receipts(receipts, public_key=key.public_key) == []
    assert check_receipts(receipts) == []
    assert receipts[0]["erased"] == {"states": 1}
    assert check_receipts([receipts[0], receipts[2]]) == ["receipt 3: it does not follow receipt 1"]
    assert check_receipts(receipts[1:]) == []


async def test_a_change_to_a_receipt_is_seen(state: State) -> None:
    receipt = await _erased(state, "ana")
    for field, value in (("erased", {"states": 2}), ("number", 7), ("finished_at", "2020-01-01")):
        changed = copy.deepcopy(receipt) | {field: value}
        assert check_receipts([changed]) == [
            f"receipt {changed['number']}: the signature does not fit its text"
        ]
    assert check_receipts([receipt], public_key=ReceiptKey("2e" * 32).public_key) == [
        "receipt 1: another key signed it"
    ]
    resigned = copy.deepcopy(receipt) | {"signature": "zz"}
    assert check_receipts([resigned]) == ["receipt 1: the signature does not fit its text"]


async def test_a_receipt_does_not_name_whom_it_erased_but_the_key_can_tell(state: State) -> None:
    receipt = await _erased(state, "ana-4711")
    assert "ana-4711" not in json.dumps(receipt)
    scope = receipt["scope"]
    assert isinstance(scope, dict)
    digest = ReceiptKey(KEY).scope_digest(state.tenant, ErasureScope("subject", "ana-4711"))
    assert scope == {"kind": "subject", "digest": digest}
    assert digest != ReceiptKey("2e" * 32).scope_digest(
        state.tenant, ErasureScope("subject", "ana-4711")
    )
    [record] = [one async for one in state.ops.erasures()]
    assert (record.scope_id, record.receipt) == ("", receipt)


async def test_receipts_of_erasures_at_the_same_time_are_one_chain(state: State) -> None:
    made = await asyncio.gather(*(_erased(state, f"owner-{at}") for at in range(6)))
    in_order = sorted(made, key=lambda one: str(one["number"]))
    assert [one["number"] for one in in_order] == [1, 2, 3, 4, 5, 6]
    assert check_receipts(in_order) == []


async def test_without_a_key_a_receipt_is_not_signed_and_says_so() -> None:
    async with holdfast.open("memory:") as state:
        receipt = await _erased(state, "ana")
    assert (receipt["signature"], receipt["scope"]) == (None, {"kind": "subject", "digest": None})
    assert check_receipts([receipt]) == [
        "receipt 1: it is not signed: HOLDFAST_RECEIPT_KEY was not set"
    ]


@pytest.mark.parametrize("bad", ["short", "zz" * 32, "1f" * 31])
async def test_a_key_that_is_none_is_refused_before_anything_is_deleted(bad: str) -> None:
    async with holdfast.open("memory:", settings=Settings(receipt_key=bad)) as state:
        ana = state.for_owner("ana")
        await ana.short_term.set_state("s1", {"a": 1})
        with pytest.raises(ConfigError, match="HOLDFAST_RECEIPT_KEY") as caught:
            await state.erase(subject="ana")
        assert bad not in str(caught.value)
        assert await ana.short_term.get_state("s1") == {"a": 1}


async def test_receipts_are_read_one_a_line() -> None:
    assert parse_receipts('{"number": 1}\n\n{"number": 2}\n') == [{"number": 1}, {"number": 2}]
    with pytest.raises(InvalidInputError, match="line 2"):
        parse_receipts('{"number": 1}\n[]')
    with pytest.raises((InvalidInputError, CodecError)):
        parse_receipts("nonsense")
