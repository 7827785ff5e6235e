"""A URL with a host that nobody knows."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.errors import UnavailableError

pytestmark = pytest.mark.asyncio


async def test_a_host_that_is_not_found_is_named_with_the_next_step() -> None:
    with pytest.raises(UnavailableError) as caught:
        await holdfast.open("postgresql://ana:s3cret@no-such-host.invalid:5433/main")
    assert "the host 'no-such-host.invalid' was not found" in str(caught.value)
    assert "check DATABASE_URL" in str(caught.value)
    assert "s3cret" not in str(caught.value)
