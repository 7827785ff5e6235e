"""The contract suite: what every engine promises, as tests that anyone's engine can run.

Write a ``Harness`` for the engine, then::

    pytest --pyargs holdfast.testing --engine module:Harness

It needs the extra ``holdfast[testing]``.
"""

from holdfast.testing.harness import CONTRACTS, Harness

__all__ = ["CONTRACTS", "Harness"]
