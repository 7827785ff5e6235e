"""A retry with a submit key is the same submit, also if an earlier version stored the first one."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.spi.tasks.draft import Draft
from holdfast.spi.tasks.stored import StoredMessage
from holdfast.values.identity import AgentId

# Computed by the version that called the session of a task ``context_id``.
STORED = "8a0dcfcfeaac25b0cdd54daec27b99b5c748345fdf7490aa901983fde1ad1448"


def test_the_digest_of_a_submit_is_that_of_earlier_versions() -> None:
    body = '{"v":1,"role":"user","content":[{"type":"text","text":"Tides?"}]}'
    message = StoredMessage("m1", datetime(2030, 1, 1, tzinfo=UTC), body)
    draft = Draft(
        AgentId("", "writer"), message, session_id="c1", submit_key="k1", metadata='{"a":1}'
    )
    assert draft.digest() == STORED
