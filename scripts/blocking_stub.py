"""Writes ``wiring/blocking_stores.pyi``: the types of a blocking state, from ``State`` itself.

For each store that a ``State`` returns there is a class with the same signatures, without
``async``: a coroutine's result is returned, an async iterator becomes a generator, and a store
among the results becomes its class here.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from holdfast.wiring import blocking_stores
from holdfast.wiring.portaled import is_store
from holdfast.wiring.state import State

PATH = Path(blocking_stores.__file__).with_suffix(".pyi")
STREAMS = {"AsyncGenerator", "AsyncIterable", "AsyncIterator"}
LEFT_OUT = {"aclose", "elsewhere", "hybrid", "loop", "use_limits", "for_owner"}
"""Of use in async code alone, or between our own classes."""
MADE_HERE = {"Generator", "Self", "builtins"}
HEAD = """\
# The types of a blocking state: the signatures of ``State`` and of its stores, without ``async``.
# Written by ``make docs``; a test keeps it equal to the code.

"""


def stub() -> str:
    """The stub, as it should be."""
    return _Stub().text()


class _Stub:
    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = defaultdict(set)
        self.modules: set[str] = set()
        self.waiting: list[type[Any]] = []
        self.seen: set[type[Any]] = {State}
        self.members: set[str] = set()

    def text(self) -> str:
        self.imports["holdfast.wiring.portal"].add("Portal")
        self.imports["typing"] |= {"Any", "Self", "type_check_only"}
        bodies = [self._class(State, "BlockingStores")]
        while self.waiting:
            kind = self.waiting.pop(0)
            bodies.append("@type_check_only\n" + self._class(kind, f"Blocking{kind.__name__}"))
        lines = [f"import {name}" for name in sorted(self.modules)]
        lines += [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self.imports.items())
        ]
        return _formatted(HEAD + "\n".join([*lines, *bodies]) + "\n")

    def _class(self, kind: type[Any], name: str) -> str:
        self.members = set(dir(kind))
        lines = [f"class {name}:"]
        if kind is State:
            lines.append("    def __init__(self, target: Any, portal: Portal) -> None: ...")
            lines.append("    def _wrap(self, answer: Any) -> Any: ...")
            lines.append("    def for_owner" + self._call(State.for_owner))
        for member in sorted(dir(kind)):
            if member.startswith("_") or member in LEFT_OUT:
                continue
            value = inspect.getattr_static(kind, member)
            if isinstance(value, property):
                lines.append("    @property")
                lines.append(f"    def {member}" + self._call(value.fget))
            elif inspect.isfunction(value):
                lines.append(f"    def {member}" + self._call(value))
        return "\n".join(lines)

    def _call(self, function: Any) -> str:
        signature = inspect.signature(function)
        owner = sys.modules[function.__module__]
        parts: list[str] = []
        for one in signature.parameters.values():
            if one.kind is one.KEYWORD_ONLY and "*" not in parts:
                parts.append("*")
            if one.name == "self":
                parts.append("self")
                continue
            default = "" if one.default is one.empty else " = ..."
            stars = "**" if one.kind is one.VAR_KEYWORD else ""
            parts.append(f"{stars}{one.name}: {self._annotation(one.annotation, owner)}{default}")
        returned = self._annotation(signature.return_annotation, owner, returned=True)
        return f"({', '.join(parts)}) -> {returned}: ..."

    def _annotation(self, text: str, owner: Any, *, returned: bool = False) -> str:
        tree = ast.fix_missing_locations(_Builtins(self).visit(ast.parse(text, mode="eval")))
        if returned:
            tree = ast.fix_missing_locations(_Waiting(self, owner).visit(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                self._name(owner, node.id)
        return ast.unparse(tree)

    def _name(self, owner: Any, name: str) -> None:
        """Import what an annotation of a module names, from where that module has it."""
        if name in vars(builtins) or name in MADE_HERE or name.startswith("Blocking"):
            return
        where = _names(owner.__name__)[name]
        if where:
            self.imports[where].add(name)
        else:
            self.modules.add(name)

    def blocking(self, owner: Any, name: str) -> str | None:
        """The class here of a store that an annotation names, if it is one."""
        where = _names(owner.__name__).get(name)
        kind = getattr(sys.modules.get(where or ""), name, None)
        if kind is State:
            return "Self"
        if not inspect.isclass(kind) or not is_store(kind):
            return None
        if kind not in self.seen:
            self.seen.add(kind)
            self.waiting.append(kind)
        return f"Blocking{name}"


class _Builtins(ast.NodeTransformer):
    """An annotation in a class with methods such as ``list``, where the built-in is meant."""

    def __init__(self, made: _Stub) -> None:
        self.made = made

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in vars(builtins) or node.id not in self.made.members:
            return node
        self.made.modules.add("builtins")
        return ast.Attribute(ast.Name("builtins"), node.id)


class _Waiting(ast.NodeTransformer):
    """A returned annotation, as a caller that waits gets it."""

    def __init__(self, made: _Stub, owner: Any) -> None:
        self.made = made
        self.owner = owner

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.made.blocking(self.owner, node.id) or node.id)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in STREAMS:
            item = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
            self.made.imports["collections.abc"].add("Generator")
            nothing = [ast.Constant(None), ast.Constant(None)]
            node = ast.Subscript(ast.Name("Generator"), ast.Tuple([item, *nothing]))
        return self.generic_visit(node)


@functools.cache
def _names(module: str) -> dict[str, str]:
    """The module that each name of a module is from; empty for an imported module itself."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {one.asname or one.name: node.module for one in node.names}
        elif isinstance(node, ast.Import):
            found |= {one.name: "" for one in node.names if one.asname is None}
        elif isinstance(node, ast.ClassDef):
            found[node.name] = module
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {one.id: module for one in targets if isinstance(one, ast.Name)}
    return found


def _formatted(text: str) -> str:
    ruff = Path(sys.executable).parent / "ruff"
    for arguments in (["check", "--select", "I", "--fix", "--quiet"], ["format", "--quiet"]):
        text = subprocess.run(  # noqa: S603 - our own linter
            [ruff, *arguments, "--stdin-filename", str(PATH), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return text
