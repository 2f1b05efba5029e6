"""Blocks that convert between storage formats."""
