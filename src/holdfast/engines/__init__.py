"""The engines, one folder each: the only code that does I/O."""
