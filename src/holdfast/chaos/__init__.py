"""What ``holdfast chaos`` runs: real work under real faults, and what must be true afterwards."""
