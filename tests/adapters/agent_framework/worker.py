"""Saves numbers for ever, and prints each one that was acknowledged."""

from __future__ import annotations

import asyncio
import itertools
import sys

from agent_framework import Message

import holdfast
from holdfast.adapters.agent_framework import HoldfastHistory


async def main(url: str, tenant: str) -> None:
    """Save until it is killed."""
    async with holdfast.open(url, tenant=tenant) as state:
        history = HoldfastHistory(state)
        for at in itertools.count():
            await history.save_messages("s1", [Message("user", [str(at)])])
            print(at, flush=True)  # noqa: T201 - the test reads it


asyncio.run(main(*sys.argv[1:]))
