"""What maintainers run by hand or through make."""
