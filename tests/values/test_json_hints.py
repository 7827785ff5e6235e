"""What is not JSON is refused with how to store it."""

from __future__ import annotations

import dataclasses
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pydantic
import pytest

from holdfast.values.codec import encode_json
from holdfast.values.content import ChatMessage
from holdfast.values.errors import InvalidInputError


@dataclasses.dataclass
class Point:
    x: int = 1


class Model(pydantic.BaseModel):
    x: int = 1


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (np.array([1.0]), r"use \.tolist\(\)"),
        (np.int64(1), r"use \.tolist\(\)"),
        (np.float32(1), r"use \.tolist\(\)"),
        (uuid.uuid4(), r"use str\(…\)"),
        (Point(), r"use dataclasses\.asdict\(…\)"),
        (Model(), r'use \.model_dump\(mode="json"\)'),
        (datetime.now(UTC), r"use \.isoformat\(\)"),
        (date(2030, 1, 1), r"use \.isoformat\(\)"),
        (Decimal(1), r"use str\(…\), or float"),
        ({1}, "use a list"),
        ((1,), "use a list"),
        (object(), "use dict, list, str"),
        (Point, "use dict, list, str"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_json_says_how_to_store_it(value: object, hint: str) -> None:
    with pytest.raises(InvalidInputError, match=hint):
        encode_json({"a": [value]}, field="state")


def test_a_call_that_was_not_awaited_is_refused_with_await() -> None:
    async def fetch() -> str:
        return "the page"

    call = fetch()
    with pytest.raises(InvalidInputError, match=r"state\.a: coroutine is not JSON: await it"):
        encode_json({"a": call}, field="state")
    call.close()


def test_bytes_are_refused_with_the_store_for_them() -> None:
    with pytest.raises(InvalidInputError, match=r"bytes is not JSON: store it with blobs\.store"):
        encode_json({"a": b"%PDF"}, field="state")


def test_data_where_content_is_wanted_is_refused_with_the_block_for_it() -> None:
    data: Any = {"seats": 2}
    with pytest.raises(InvalidInputError, match=r"not dict: wrap data in \[.*DataBlock\(…\)\]"):
        ChatMessage.user(data)
