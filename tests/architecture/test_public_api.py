"""What ``import holdfast`` offers: sorted, complete, documented."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder

import holdfast
import holdfast.blocking
import holdfast.testing
from holdfast.errors import HoldfastError
from holdfast.runtime.worker_options import WorkerOptions
from holdfast.wiring.front_door import OpenOptions
from scripts.generate_docs import PROTOCOLS
from tests.architecture.source import PACKAGE, ROOT, package_of

PLACES: list[Any] = [
    holdfast,
    holdfast.content,
    holdfast.errors,
    holdfast.memory,
    holdfast.checkpoints,
    holdfast.items,
    holdfast.schedules,
    holdfast.ops,
    holdfast.spi,
]
"""Where a name is that agent code, an operator or an engine imports."""
MODULES: list[Any] = [*PLACES, holdfast.blocking, holdfast.testing]
NAMES: dict[str, Any] = {
    **{name: place for place in PLACES[::-1] for name in place.__all__},
    "open": holdfast,
}
"""What is documented; ``open`` is no part of ``import *``, where it would replace Python's own."""


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_list_of_public_names_is_sorted_and_complete(module: Any) -> None:
    assert list(module.__all__) == sorted(module.__all__)
    public = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    future = {"annotations", "TypeVar", "T"}
    own = {name for name in public if _is_own(module, name)} - future
    assert set(module.__all__) == own - set(dir(builtins))


def test_importing_everything_replaces_nothing_of_pythons_own() -> None:
    for module in MODULES:
        assert set(module.__all__).isdisjoint(dir(builtins))
    assert holdfast.open.__module__ == "holdfast.wiring.front_door"
    assert holdfast.blocking.open.__module__ == "holdfast.blocking"


def _is_own(module: Any, name: str) -> bool:
    value = getattr(module, name)
    if module is holdfast:
        return True
    return name in module.__all__ or getattr(value, "__module__", "") == module.__name__


def test_every_error_is_public() -> None:
    def below(kind: type[HoldfastError]) -> set[str]:
        return {kind.__name__}.union(*(below(one) for one in kind.__subclasses__()))

    assert below(HoldfastError) == set(holdfast.errors.__all__)


def test_every_protocol_is_public() -> None:
    modules = (
        *(holdfast, holdfast.ops, holdfast.checkpoints, holdfast.items, holdfast.memory),
        holdfast.schedules,
    )
    agents = {name for module in modules for name in module.__all__}
    assert {protocol.__name__ for protocol in PROTOCOLS.values()} <= agents


def test_the_top_level_has_at_most_sixty_names() -> None:
    assert len(holdfast.__all__) <= 60


@pytest.mark.parametrize(
    ("place", "name"),
    [(place, name) for place, names in holdfast._MOVED.items() for name in names],
)
def test_a_name_that_has_moved_resolves_with_a_warning(place: Any, name: str) -> None:
    said = f"^holdfast.{name} is deprecated: use {place.__name__}.{name}$"
    with pytest.warns(DeprecationWarning, match=said) as seen:
        assert getattr(holdfast, name) is getattr(place, name)
    assert [warning.filename for warning in seen] == [__file__]
    assert name not in holdfast.__all__
    assert name in place.__all__


def test_a_name_that_never_was_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'TextBlok'"):
        holdfast.TextBlok  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_documented_with_an_example(name: str) -> None:
    value = getattr(NAMES[name], name)
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return
    assert value.__doc__, f"{name} has no docstring"
    if inspect.isfunction(value):
        assert _shows(value), f"{name} has no example"
        return
    methods = [
        one
        for key, one in vars(value).items()
        if not key.startswith("_") and (inspect.isfunction(one) or isinstance(one, classmethod))
    ]
    if NAMES[name] is holdfast.spi and getattr(value, "_is_protocol", False):
        return  # how-to/write-an-engine.md shows one
    if getattr(value, "_is_protocol", False):
        silent = [one.__name__ for one in methods if not _shows(one)]
        assert silent == [], f"methods of {name} without an example"
    else:
        assert _shows(value) or any(map(_shows, methods)), f"{name} has no example"


def _shows(value: Any) -> bool:
    text = inspect.getdoc(value) or ""
    return ">>>" in text or "::\n" in text or text.endswith("::")


def test_no_public_signature_takes_any_keyword() -> None:
    """A typo in a keyword must be an error of the type checker."""
    calls: dict[str, Any] = {"holdfast.blocking.open": holdfast.blocking.open}
    for name, place in NAMES.items():
        value = getattr(place, name)
        calls[name] = value
        if inspect.isclass(value):
            own = {key: getattr(value, key) for key in dir(value) if not key.startswith("_")}
            calls |= {f"{name}.{key}": one for key, one in own.items()}
    wrong = [
        name
        for name, one in calls.items()
        if inspect.isfunction(one) or inspect.ismethod(one)
        for parameter in inspect.signature(one).parameters.values()
        if parameter.kind is inspect.Parameter.VAR_KEYWORD
        and not str(parameter.annotation).startswith("Unpack[")
    ]
    assert wrong == ["TaskContext.step"], "it passes them on to the function of the step"


def test_the_blocking_front_door_takes_what_the_other_takes() -> None:
    takes = inspect.signature(holdfast.open).parameters.values()
    named = {one.name for one in takes if one.kind is inspect.Parameter.KEYWORD_ONLY}
    assert named == OpenOptions.__annotations__.keys()


def test_a_blocking_worker_takes_what_a_worker_takes() -> None:
    takes = inspect.signature(holdfast.Worker).parameters.values()
    named = {one.name: one.annotation for one in takes if one.kind is one.KEYWORD_ONLY}
    options = {name: one.__forward_arg__ for name, one in WorkerOptions.__annotations__.items()}
    assert options == named


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    if path.name.startswith("test_"):
        return
    if path.parent.parent.name == "adapters":
        # Its framework is not installed here, and without it the import is an error that says so.
        assert ast.get_docstring(ast.parse(path.read_text()))
        return
    assert importlib.import_module(package_of(path).removesuffix(".__init__")).__doc__


def test_the_wheel_holds_the_package_its_types_and_the_suite(tmp_path: Path) -> None:
    [built] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(built).namelist()
    wanted = {
        path.relative_to(ROOT / "src").as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= set(names)
    assert not [name for name in names if name.startswith(("tests/", "docs/", "scripts/"))]
