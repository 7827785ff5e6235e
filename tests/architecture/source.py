"""The project's own source, for tests that read it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "holdfast"


def modules(below: Path = PACKAGE) -> Iterator[tuple[Path, ast.Module]]:
    """Every Python file below a folder, parsed."""
    for path in sorted(below.rglob("*.py")):
        yield path, ast.parse(path.read_text(), filename=str(path))


def imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, wherever in it, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or "", node.lineno


def package_of(path: Path) -> str:
    """The dotted name of a file's module."""
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
