"""Providers of key-encryption keys (KEKs), which encrypt data keys."""
