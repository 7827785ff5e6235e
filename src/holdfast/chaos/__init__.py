"""The fault-injection test of ``holdfast chaos``: a workload, faults, and checked invariants."""
