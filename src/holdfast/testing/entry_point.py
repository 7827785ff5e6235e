"""What pytest loads wherever Holdfast is installed: the suite's options, but only when it is run.

Options such as ``--engine`` are added when the command line names ``holdfast.testing``, so that no
other project's pytest run sees them.
"""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Load the suite if it is asked for."""
    asked = any("holdfast.testing" in arg or "holdfast/testing" in arg for arg in args)
    if asked:
        early_config.pluginmanager.import_plugin("holdfast.testing.suite")
