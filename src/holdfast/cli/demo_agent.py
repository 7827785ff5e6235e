"""The agent of ``holdfast demo``: it reads about tides, writes a report, and asks who reads it.

It needs no model and no network, so that every run is the same. Each step also writes a line to the
file in ``DEMO_JOURNAL``: the demo counts those lines and does not rely on the ledger.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from holdfast.runtime.app import App
from holdfast.runtime.context import TaskContext

PAGES = {
    "Why there are tides": "The moon pulls at the near side of the sea more than at the far side. "
    "The earth turns below both bulges, so most coasts have high water twice a day.",
    "Springs and neaps": "At full and new moon the sun pulls along, and the range is large. "
    "A week later it pulls across, and the range is small.",
    "The tides of Brest": "The range is about six metres at springs and three at neaps. "
    "High water comes some fifty minutes later each day.",
    "The streams of the Goulet": "Through the narrows the stream runs at up to five knots. "
    "Slack water is short, and not at the time of high water.",
}
REPORT = "report.md"


@dataclass
class Order:
    """The answer that the agent asks for; other answers are refused."""

    reader: Literal["sailor", "tourist"]
    copies: int


app = App("researcher", description="Reads about tides, writes a report, asks who will read it.")


@app.handler
async def research(task: TaskContext) -> str:
    """Write a report on what the message asks about. It asks one question on the way."""
    pages = await task.step("fetch", fetch, task.message.text)
    notes = await task.step("read", read, pages)

    async def draft() -> int:
        note("began draft")
        lines = report(task.message.text, notes)
        for at, line in enumerate(lines, start=1):
            await task.artifact(REPORT, line, append=True, last=at == len(lines))
            note(f"wrote line {at}")
            await pace()
        note("finished draft")
        return len(lines)

    lines = await task.step("draft", draft)
    order = await task.ask("Who will read it, and how many copies?", schema=Order)
    printed = await task.call(
        "printer", f"{lines} lines for a {order.reader}, {order.copies} copies"
    )
    return f"{printed['lines']}."


@app.handler(agent="printer")
async def print_report(task: TaskContext) -> dict[str, str]:
    """Publish a report; the researcher calls it as a child task, and waits without a worker."""
    await task.step("publish", publish, task.message.text)
    return {"lines": task.message.text}


async def fetch(question: str) -> dict[str, str]:
    """Return the pages about the question; all pages if none matches."""
    note("began fetch")
    await pace()
    words = {word.strip("?.,").lower() for word in question.split() if len(word) > 3}
    found = {
        title: text
        for title, text in PAGES.items()
        if words & {word.strip("?.,").lower() for word in f"{title} {text}".split()}
    }
    note("finished fetch")
    return found or PAGES


async def read(pages: dict[str, str]) -> list[dict[str, Any]]:
    """Return the sentences of each page."""
    note("began read")
    await pace()
    notes = [
        {"title": title, "facts": [one.strip() + "." for one in text.split(".") if one.strip()]}
        for title, text in pages.items()
    ]
    note("finished read")
    return notes


async def publish(reader: str) -> str:
    """Simulate a call of an external service, which is sent the idempotency key."""
    note("began publish")
    await pace()
    note("finished publish")
    return f"published for {reader}"


def report(question: str, notes: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the report: the same for the same notes, in any process.

    >>> len(report("Tides?", [{"title": "Springs", "facts": ["Large.", "Rare."]}]))
    4
    """
    lines = [f"# {question}\n"]
    for page in notes:
        lines.append(f"\n## {page['title']}\n\n")
        lines += [f"- {fact}\n" for fact in page["facts"]]
    return lines


async def pace() -> None:
    """Sleep about as long as a model call takes, if a person watches the demo."""
    await asyncio.sleep(float(os.environ.get("DEMO_PACE_SECONDS", "0")))


def note(what: str) -> None:
    """Append a line to the journal file, if there is one; it survives the process."""
    journal = os.environ.get("DEMO_JOURNAL")
    if journal:
        with Path(journal).open("a") as file:
            file.write(f"{os.getpid()} {what}\n")
