"""The reference of the public names, of the command line and of the settings, from the code."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import click
import typer

import holdfast
import holdfast.blocking
import holdfast.testing
from holdfast.cli.commands import app
from holdfast.wiring import settings

MODULES: tuple[Any, ...] = (
    holdfast,
    holdfast.content,
    holdfast.errors,
    holdfast.memory,
    holdfast.checkpoints,
    holdfast.items,
    holdfast.queues,
    holdfast.schedules,
    holdfast.ops,
    holdfast.spi,
    holdfast.blocking,
    holdfast.testing,
)
MADE = {holdfast.App, holdfast.Worker, holdfast.ManualClock}
"""Classes that callers construct: the page has their parameters, and what they inherit."""

BLANKS = re.compile(r"\s+")


def api_page() -> str:
    """Every public name: what it is for, its signature, its fields and its methods."""
    lines = [
        "# Public names",
        "",
        "Everything that `import holdfast` offers, by name, and then by module: errors, blocks of",
        "messages, compaction, what operators meet, what engines implement. `make docs` writes",
        "this page. The methods of the stores are on the page of the [contracts](contracts.md),",
        "with examples; what a handler can use is on that of [TaskContext](task-context.md).",
        "`open` is not in `from holdfast import *`: there it would replace Python's own.",
        "",
    ]
    for module in MODULES:
        lines += [f"## `{module.__name__}`", "", _first(module), ""]
        for name in sorted({*module.__all__, *(("open",) if hasattr(module, "open") else ())}):
            lines += _entry(name, getattr(module, name))
    return "\n".join(lines).rstrip() + "\n"


def _entry(name: str, value: Any) -> list[str]:
    lines = [f"### `{name}`", ""]
    if inspect.isclass(value):
        kind = _kind(value)
        lines += [f"{kind}. {_first(value)}" if kind else _first(value), ""]
        if value in MADE:
            lines[-2:] = [f"`{name}{_signature(value)}`", "", *_prose(value)]
        members = _members(value)
        lines += [*members, ""] if members else []
    elif callable(value):
        lines += [f"`{name}{_signature(value)}`", "", _first(value), ""]
    else:
        options = get_args(value)
        named = ", ".join(f"`{_type(one)}`" for one in options) if options else f"`{value!r}`"
        lines += [f"One of {named}." if options else f"Is {named}.", ""]
    return lines


def _kind(value: type[Any]) -> str:
    if issubclass(value, BaseException):
        return "Error"
    if issubclass(value, Enum):
        return "Enum"
    if getattr(value, "_is_protocol", False):
        return "Protocol"
    return "Value" if dataclasses.is_dataclass(value) else ""


def _members(value: type[Any]) -> list[str]:
    if issubclass(value, Enum):
        return [f"- `{one.name}`: `{one.value!r}`" for one in value]
    lines = []
    if dataclasses.is_dataclass(value):
        about = _attribute_docs(value)
        for slot in dataclasses.fields(value):
            if slot.name.startswith("_"):
                continue
            said = f": {about[slot.name]}" if slot.name in about else ""
            lines.append(f"- `{slot.name}: {_type(slot.type)}`{said}")
    own = dict(inspect.getmembers_static(value)) if value in MADE else vars(value)
    for name in sorted(name for name in own if not name.startswith("_")):
        member = inspect.getattr_static(value, name)
        call = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if inspect.isfunction(call):
            awaited = "await " if inspect.iscoroutinefunction(call) else ""
            lines.append(f"- `{awaited}{name}{_signature(call)}`: {_first(call)}")
        elif isinstance(member, property):
            lines.append(f"- `{name}`: {_first(member)}")
    return lines


def _signature(call: Any) -> str:
    found = inspect.signature(call)
    kept = [one for one in found.parameters.values() if one.name not in {"self", "cls"}]
    shown = [one.replace(default=_Shown(one.default)) if _has_default(one) else one for one in kept]
    text = str(found.replace(parameters=shown)).replace("'", "")
    return re.sub(r"\b(?:holdfast|datetime|collections|typing)(?:\.\w+)*\.(?=\w)", "", text)


def _has_default(parameter: inspect.Parameter) -> bool:
    return parameter.default is not inspect.Parameter.empty


class _Shown:
    """A default as it is written, without addresses."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        if isinstance(self._value, Enum):
            return f"{type(self._value).__name__}.{self._value.name}"
        if callable(self._value):
            return getattr(self._value, "__name__", "…")
        plain = isinstance(self._value, (str, int, float, bool, tuple, type(None)))
        return repr(self._value).replace("'", '"') if plain else "…"


def _type(given: object) -> str:
    return given if isinstance(given, str) else getattr(given, "__name__", str(given))


def _first(value: object) -> str:
    """The first sentence or two of a docstring, in one line."""
    paragraph = (inspect.getdoc(value) or "").split("\n\n")[0].removesuffix("::").strip()
    return BLANKS.sub(" ", paragraph).replace("``", "`")


def _prose(value: object) -> list[str]:
    """The paragraphs of a docstring, without its examples."""
    paragraphs = (inspect.getdoc(value) or "").split("\n\n")
    prose = [one for one in paragraphs if not one.startswith((" ", ">>>", "::"))]
    lines = [BLANKS.sub(" ", one.removesuffix("::").strip()).replace("``", "`") for one in prose]
    return [text for line in lines for text in (line, "")]


def _attribute_docs(value: type[Any]) -> dict[str, str]:
    """The strings below the attributes of a class."""
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(value)))
    [body] = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    found = {}
    for slot, said in itertools.pairwise(body):
        if (
            isinstance(slot, ast.AnnAssign)
            and isinstance(slot.target, ast.Name)
            and isinstance(said, ast.Expr)
            and isinstance(said.value, ast.Constant)
        ):
            found[slot.target.id] = (
                BLANKS.sub(" ", str(said.value.value)).strip().replace("``", "`")
            )
    return found


def settings_page() -> str:
    """Every setting: its variable, its default and its meaning."""
    lines = [
        "# Settings",
        "",
        "Read from the environment and from a file `.env`, or passed as `holdfast.Settings(...)`;",
        "`make docs` writes this page. [Configure](../how-to/configure.md) shows how to use them.",
        "",
        "| variable | field of `Settings` | default | meaning |",
        "|---|---|---|---|",
    ]
    about = _attribute_docs(settings.Settings)
    for slot in dataclasses.fields(settings.Settings):
        variable, _, meaning = about[slot.name].partition(": ")
        default = "" if slot.default in ("", None) else f"`{slot.default}`"
        name = variable.strip("`")
        lines.append(f"| `{name}` | `{slot.name}` | {default} | {_cell(meaning)} |")
    return "\n".join(lines) + "\n"


def cli_page() -> str:
    """Every command with its arguments and options."""
    lines = [
        "# The command line",
        "",
        "Every command of `holdfast`, as its `--help` shows it; `make docs` writes this page.",
        "",
    ]
    for words, command in _commands(["holdfast"], typer.main.get_command(app)):
        lines += [f"## `{' '.join(words)}`", "", *_help(command), ""]
        rows = [row for one in command.params if (row := _parameter(one))]
        if rows:
            lines += ["| argument or option | default | meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(lines).rstrip() + "\n"


def _commands(words: list[str], command: Any) -> list[tuple[list[str], Any]]:
    below = getattr(command, "commands", {})
    return [
        (words, command),
        *(
            one
            for name, child in sorted(below.items())
            if not child.hidden
            for one in _commands([*words, name], child)
        ),
    ]


def _help(command: Any) -> list[str]:
    text = inspect.cleandoc(command.help or "").replace("\b\n", "").replace("\f", "")
    return [line.rstrip() for line in text.splitlines()]


def _parameter(one: Any) -> str | None:
    if getattr(one, "hidden", False) or one.name == "help":
        return None
    is_option = isinstance(one, click.Option) or bool(getattr(one, "secondary_opts", None))
    names = ", ".join(f"`{name}`" for name in [*one.opts, *one.secondary_opts])
    shown = names if is_option or names.startswith("`-") else f"`{one.name.upper()}`"
    default = one.default
    plain = isinstance(default, (str, int, float, Path)) and default not in ("", False)
    value = f"`{default}`" if plain else ""
    return f"| {shown} | {value} | {_cell(getattr(one, 'help', '') or '')} |"


def _cell(text: str) -> str:
    """A text in one cell of a table."""
    return BLANKS.sub(" ", text).replace("|", "\\|")
