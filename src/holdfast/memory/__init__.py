"""Views on what is stored, made for a model's window."""
