"""A process that writes the same twenty items again and again, until it is killed."""

from __future__ import annotations

import asyncio
import itertools
import sys

import holdfast
from holdfast.items import ItemPut

KEYS = [f"k{at:02}" for at in range(20)]


async def main(url: str, tenant: str) -> None:
    """Write a number to all items in one call, and print it when it is acknowledged."""
    async with holdfast.open(url, tenant=tenant) as state:
        for number in itertools.count(1):
            await state.items.put_many([ItemPut(("n",), key, {"n": number}) for key in KEYS])
            print(number, flush=True)  # noqa: T201 - the parent waits for it


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
