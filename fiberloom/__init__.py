"""Fiberloom: generator of tiled sparse tensor accelerators. The work is in the rooms ``rtl``, ``gen`` and ``sw``."""
