"""Tests of sealed mode."""
