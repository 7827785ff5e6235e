"""The page of ``TaskContext``: everything that a handler can use, from the docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from dataclasses import dataclass
from typing import Any

from holdfast.contracts.working_memory import WorkingMemory
from holdfast.runtime.context import TaskContext
from holdfast.runtime.session import TaskHistory
from holdfast.runtime.stores import HandlerStores

GROUPS = {
    "The request": ("message", "messages", "conversation", "metadata"),
    "Durable work": (
        *("step", "gather", "idempotency_key", "call", "spawn", "wait", "ask", "say"),
        *("receive", "artifact", "reply", "sleep", "sleep_until"),
    ),
    "Memory": ("state", "history", "memory", "stores"),
    "Who and what": ("id", "session_id", "agent", "owner", "tenant"),
    "This run": ("attempt", "fence", "cancelled", "log", "resources"),
}
INTERNAL = {"context_id", "resume", "check_end", "check_reply", "cleanup"}
"""Deprecated, or for the worker: a handler uses none of it."""

BOUND: dict[str, type[Any]] = {
    "state": WorkingMemory,
    "history": TaskHistory,
    "stores": HandlerStores,
}
"""Attributes with methods of their own."""

_INTRO = """\
# TaskContext

What the handler of a task can use. A worker passes it to the handler as its only argument:

```python
import holdfast

app = holdfast.App("greeter")


@app.handler
async def greet(task: holdfast.TaskContext) -> str:
    name = await task.step("find out", lambda: task.message.text.title())
    return f"Hello, {name}"


async with holdfast.open("memory:") as state:
    task = await app.submit(state, "ana")
    await app.run_until_idle(state)
    print((await state.tasks.get(task.id)).messages[-1].text)
    # > Hello, Ana
```

A worker may run a handler again from its first line at any time: after a crash, an answer, a pause
or a sleep. What `step`, `ask`, `say` and `sleep` have stored is not done again. So a handler takes
the same steps in the same order on every run, and does whatever must not be repeated in a step.
[An agent that survives kill -9](../tutorial/survive-kill-9.md) shows it at work.

`make docs` writes this page from the docstrings. A test runs every example inside of a handler,
with `pages` as a list of texts and `fetch`, `summarise`, `answer` and `bank` as functions and
services of its own.
"""


@dataclass(frozen=True)
class Member:
    """A method, a property or an attribute: how it is called, what it does, an example."""

    name: str
    signature: str
    text: str
    example: str


def members(cls: type[Any]) -> dict[str, Member]:
    """The public members of a class by name, from its source and that of its bases."""
    found: dict[str, Member] = {}
    bases = [one for one in reversed(cls.__mro__) if one is not object]
    trees: list[Any] = [ast.parse(textwrap.dedent(inspect.getsource(one))) for one in bases]
    for node in [node for tree in trees for node in tree.body[0].body]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name == "__init__":
                found |= {one.name: one for one in _attributes(node)}
            elif not node.name.startswith("_"):
                found[node.name] = _member(
                    node.name, ast.get_docstring(node) or "", _signature(node)
                )
    return found


def _attributes(init: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Member]:
    """What ``__init__`` sets, with the text after it."""
    found = []
    for node, after in zip(init.body, [*init.body[1:], None], strict=True):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
            continue
        name = node.targets[0].attr
        if name.startswith("_"):
            continue
        told = after.value if isinstance(after, ast.Expr) else None
        text = told.value if isinstance(told, ast.Constant) else ""
        found.append(_member(name, inspect.cleandoc(str(text)), ""))
    return found


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    if any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list):
        return f": {ast.unparse(node.returns)}" if node.returns else ""
    arguments = ast.unparse(node.args).removeprefix("self").removeprefix(", ")
    arguments = re.sub(r"(?<=[\w\]])=(?=\S)", " = ", arguments)
    result = ast.unparse(node.returns) if node.returns else "None"
    return f"({arguments}) -> {result}"


def _member(name: str, doc: str, signature: str) -> Member:
    text, _, rest = doc.partition("::")
    prose = re.sub(r"``([^`]+)``", r"`\1`", text.strip())
    return Member(name, signature, prose, textwrap.dedent(rest.strip("\n")).strip())


def page() -> str:
    """``docs/reference/task-context.md``."""
    known = members(TaskContext)
    lines = [_INTRO]
    for title, names in GROUPS.items():
        lines += [f"## {title}", ""]
        for name in names:
            lines += _section(known[name])
    lines.pop()
    return "\n".join(lines) + "\n"


def _section(one: Member) -> list[str]:
    lines = [f"### `{one.name}`", ""]
    if one.signature:
        lines += [f"`task.{one.name}{one.signature}`", ""]
    lines += [one.text, "", "```py", one.example, "```", ""]
    if one.name == "memory":
        lines += ["All of its methods: [`AgentMemory`](contracts.md#agentmemory-memory).", ""]
    for inner in members(BOUND[one.name]).values() if one.name in BOUND else ():
        lines += [f"- **`task.{one.name}.{inner.name}`**`{inner.signature}`<br>{_line(inner)}"]
    return [*lines, ""] if one.name in BOUND else lines


def _line(one: Member) -> str:
    example = one.example.replace("memory.state.", "task.state.")
    return f"{' '.join(one.text.split())} `{' '.join(example.split())}`"


def examples() -> dict[str, str]:
    """Every example of the page by the name of its member."""
    found = {name: one.example for name, one in members(TaskContext).items()}
    for attribute, kind in BOUND.items():
        for name, one in members(kind).items():
            example = one.example.replace("memory.state.", "task.state.")
            found[f"{attribute}.{name}"] = example
    return {name: text for name, text in found.items() if name not in INTERNAL}
