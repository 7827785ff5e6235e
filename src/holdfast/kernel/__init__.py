"""Words and promises: value types, errors and Protocols; no I/O."""
