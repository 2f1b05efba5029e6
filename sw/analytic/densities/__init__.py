"""Density models: how many nonzeros a tile of a tensor has (paper, section 5.3.2). One file each."""
