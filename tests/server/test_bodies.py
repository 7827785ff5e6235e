"""How much memory the bodies of requests take, and whose."""

from __future__ import annotations

import pytest

from holdfast.server.gate import SHARES, Bodies, Refusal


def test_one_caller_cannot_take_the_memory_of_all() -> None:
    bodies = Bodies(SHARES * 100)
    with bodies.held("bob") as large, bodies.held("bob") as more, bodies.held("ana") as other:
        large.add(b"x" * 100)
        with pytest.raises(Refusal, match="too many large requests"):
            more.add(b"x")
        other.add(b"x" * 100)


def test_what_an_answer_no_longer_needs_is_given_back() -> None:
    bodies = Bodies(SHARES * 100)
    with bodies.held("bob") as first:
        first.add(b"x" * 100)
        first.release()
        with bodies.held("bob") as second:
            second.add(b"x" * 100)
    with bodies.held("bob") as again:
        again.add(b"x" * 100)
