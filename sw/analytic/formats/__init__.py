"""Representation formats of one rank of a tensor: what data they take besides the values (paper, section 5.3.3)."""
