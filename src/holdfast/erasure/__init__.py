"""Erasures: delete all data of a scope in every store, and prove it with a receipt."""
