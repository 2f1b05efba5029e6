"""Adders and dividers of a compute array that a converter takes over (MINT_mr)."""
