"""README and docs say what is true: their code runs, their links lead somewhere."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, undefined_names

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)?[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\((?!https?:|mailto:)([^)#\s]+)(?:#[^)]*)?\)")


def _python_blocks() -> list[object]:
    return [
        pytest.param(block, id=f"{page.relative_to(ROOT)}-{at}")
        for page in PAGES
        for at, (language, block) in enumerate(FENCE.findall(page.read_text()), start=1)
        if language == "python"
    ]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that an embedded server's user can enter."""
    with tempfile.TemporaryDirectory(prefix="hf-docs-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("block", _python_blocks())
def test_every_code_block_runs(
    block: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    for name in ("STORAGE_TYPE", "DATABASE_URL", "HOLDFAST_DIR", "REDIS_URL", "BLOB_URL"):
        monkeypatch.delenv(name, raising=False)
    code = compile(block, "<docs>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    namespace = {"__name__": "docs"}
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, namespace))  # noqa: S307 - our own pages
    else:
        exec(code, namespace)  # noqa: S102 - our own pages
    wanted = re.findall(r"# > (.*)", block)
    assert capsys.readouterr().out.splitlines() == wanted


@pytest.mark.parametrize("block", _python_blocks())
def test_every_name_in_a_code_block_is_defined_in_it(block: str) -> None:
    # A handler that is shown is not called when the block runs.
    assert undefined_names([ast.parse(block)]) == set()


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for language, block in FENCE.findall(page.read_text()):
            if language in {"bash", "sh", "console"}:
                named = set(re.findall(r"^\$? ?make ([a-z-]+)", block, re.MULTILINE))
                assert named <= targets, page.name


def test_every_link_between_pages_leads_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)} -> {target}"
        for page in PAGES
        for target in LINK.findall(page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_no_page_installs_from_a_place_where_the_package_is_not() -> None:
    wrong = [
        page.name for page in PAGES if re.search(r"pip install ['\"]?holdfast", page.read_text())
    ]
    assert wrong == []


def test_every_extra_is_described() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "how-to" / "configure.md").read_text().partition("## Extras")[2]
    missing = [name for name in extras["optional-dependencies"] if f"`{name}`" not in page]
    assert missing == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    to_read = [ROOT / "README.md"]
    while to_read:
        page = to_read.pop()
        seen.add(page)
        links = {(page.parent / target).resolve() for target in LINK.findall(page.read_text())}
        to_read += [one for one in links - seen if one.suffix == ".md" and one.exists()]
    assert {str(page.relative_to(ROOT)) for page in PAGES if page not in seen} == set()


def test_no_page_and_no_pin_names_a_registry_or_a_machine() -> None:
    address = re.compile(
        r"https?://[\w.-]*(pypi|pythonhosted|npmjs|debian)|--index|--find-links|/root/"
    )
    files = [*PAGES, *(ROOT / "requirements").iterdir(), ROOT / "pyproject.toml", ROOT / "Makefile"]
    assert [
        one.name
        for one in files
        if address.search(one.read_text().replace("--no-emit-index-url", ""))
    ] == []


def test_the_architecture_page_names_every_package() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    packages = {one.parent.name for one in (ROOT / "src" / "holdfast").glob("*/__init__.py")}
    assert packages == set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
