"""Studio at the end of ``holdfast demo``: sample data to look at, and the link to open it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from importlib.util import find_spec

from holdfast.cli.demo_stage import Stage
from holdfast.wiring.front_door import open as open_state
from holdfast.wiring.settings import Settings

_LINK = re.compile(r"Studio: (\S+)")


def has_studio() -> bool:
    """Return whether the extra ``studio`` is installed.

    >>> isinstance(has_studio(), bool)
    True
    """
    return find_spec("jinja2") is not None


def fill_world(stage: Stage, progress: Callable[[str], None]) -> None:
    """Add sample tasks, boards, memory and a graph, unless they exist.

    ::

        fill_world(stage, print)
    """
    from holdfast.studio.demo_world import fill, is_filled  # noqa: PLC0415 - a separate extra

    async def work() -> None:
        async with open_state(str(stage.state), settings=Settings(state_versions=100)) as state:
            if not await is_filled(state):
                await fill(state, progress=progress)

    asyncio.run(work())


def studio_link(stage: Stage) -> str:
    """Return the link that the service printed at its last start; ``""`` if it printed none.

    ::

        print(studio_link(stage))
    """
    found = _LINK.findall(stage.log("service").read_text(errors="replace"))
    return found[-1] if found else ""
