"""Renders pages. Stored content is not trusted: it is escaped, and hidden characters are shown."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import msgspec

from holdfast.studio.markdown import markdown
from holdfast.studio.visible import visible
from holdfast.values.as_json import jsonable
from holdfast.values.formats import ago, short, span
from holdfast.values.tasks.records import TaskRecord

FOLDER = Path(__file__).parent
LABELS = {
    "working": "Working",
    "submitted": "Queued",
    "input-required": "Needs input",
    "auth-required": "Needs login",
    "paused": "Paused",
    "completed": "Completed",
    "failed": "Failed",
    "canceled": "Canceled",
    "rejected": "Rejected",
}


def render(name: str, **values: Any) -> str:
    """Return a page.

    ::

        render("refused.html", title="Log in", text="", theme="")
    """
    return _environment().get_template(name).render(values)


@cache
def _environment() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible,
    )
    found.globals.update(labels=LABELS, now=lambda: datetime.now(UTC))
    found.filters.update(
        ago=ago,
        span=span,
        short=lambda text, limit=90: short(str(text), limit),
        path=lambda text: quote(str(text), safe=""),
        iso=lambda when: when.isoformat(),
        hms=lambda when: when.astimezone(UTC).strftime("%H:%M:%S.%f")[:-3],
        day=lambda when: when.astimezone(UTC).strftime("%d %b %Y"),
        stamp=lambda when: when.astimezone(UTC).strftime("%d %b %Y %H:%M:%S UTC"),
        last_line=last_line,
        md=markdown,
        options=options,
        bytes=size,
        line=lambda value: json_text(value, most=500),
        pretty=lambda value, most=20_000: json_text(value, indent=2, most=most),
        initial=lambda name: next((one for one in str(name) if one.isalnum()), "?").upper(),
    )
    return found


def json_text(value: Any, *, indent: int | None = None, most: int) -> str:
    """Return the first ``most`` characters of a value's JSON, without encoding the rest.

    >>> json_text({"at": [1, 2]}, most=100), json_text(list(range(1000)), most=6)
    ('{"at": [1, 2]}', '[0, 1,…')
    """
    found, size = [], 0
    for piece in json.JSONEncoder(ensure_ascii=False, indent=indent, default=jsonable).iterencode(
        value
    ):
        found.append(piece)
        size += len(piece)
        if size > most:
            return "".join(found)[:most] + "…"
    return "".join(found)


def json_size(value: Any) -> int:
    """Return how many bytes a value's JSON has.

    >>> json_size({"tide": "é"})
    13
    """
    return len(msgspec.json.encode(value, enc_hook=jsonable))


def options(task: TaskRecord) -> list[str]:
    """Return the options of the question that a task waits for; empty if any answer is valid.

    ::

        options(await state.tasks.get(task_id))
    """
    said = task.status_message
    found = said.metadata.get("options") if said is not None else None
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def last_line(text: str) -> str:
    r"""Return the last line that is not empty; in a traceback, that is the error.

    >>> last_line("Traceback …\nValueError: no tide\n")
    'ValueError: no tide'
    """
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def size(count: int) -> str:
    """Format a size.

    >>> size(900), size(2048), size(5 << 20)
    ('900 B', '2.0 KB', '5.0 MB')
    """
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} KB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MB"


def is_word(text: str) -> bool:
    """Return whether a text has a letter or a digit.

    >>> is_word("tide"), is_word(" - ")
    (True, False)
    """
    return any(unicodedata.category(one)[0] in "LN" for one in text)
