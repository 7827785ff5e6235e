"""What ``holdfast bench`` runs: measurements beside the bare driver, never tests."""
