"""The contract suite runs on our own engines as it does on anyone's."""

import pytest

pytest_plugins = ["holdfast.testing.suite"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The long form of the fault runs is asked for; it takes many minutes."""
    parser.addoption("--long", action="store_true", help="run the long form of the fault runs")
