"""The contract suite runs on our own engines as it does on anyone's."""

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["holdfast.testing.suite"]

# No test depends on how much fits into a second, also not those that make up their input.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The long form of the fault runs is asked for; it takes many minutes."""
    parser.addoption("--long", action="store_true", help="run the long form of the fault runs")
