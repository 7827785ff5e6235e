"""The contract suite runs on our own engines as it does on anyone's."""

pytest_plugins = ["holdfast.testing.suite"]
