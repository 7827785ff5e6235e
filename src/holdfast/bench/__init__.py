"""The benchmarks of ``holdfast bench``: measurements against the bare driver, not tests."""
