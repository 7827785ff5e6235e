"""Imports the app that a command runs: ``module:app``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from holdfast.runtime.app import App
from holdfast.values.errors import ConfigError


def load_app(spec: str) -> App:
    """Import the ``App`` at ``module:name``; modules in the current folder are found first.

    Without ``:name`` it is the module's ``app``. An exception that the module itself raises is
    shown with its traceback.

    ::

        app = load_app("my_agents:app")
    """
    module_name, _, name = spec.partition(":")
    name = name or "app"
    if not module_name or module_name.startswith(".") or not name.isidentifier():
        raise ConfigError(f"{spec!r} names no app: write it as module:app, such as my_agents:app")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise
        hint = "run the command in the folder that it is in, or install it"
        if module_name.endswith(".py") and "/" not in module_name:
            hint = f"a module is written without .py: {module_name.removesuffix('.py')}:{name}"
        raise ConfigError(f"there is no module {module_name!r}: {hint}") from None
    found = getattr(module, name, None)
    if isinstance(found, App):
        return found
    apps = [one for one, value in vars(module).items() if isinstance(value, App)]
    problem = "is not a holdfast.App" if hasattr(module, name) else "is not there"
    hint = f"it has {', '.join(apps)}" if apps else 'make one: app = holdfast.App("my-agent")'
    raise ConfigError(f"{name!r} in the module {module_name!r} {problem}: {hint}")
