"""Studio over ASGI and in a real browser."""
