"""Step two, sparse: what of the dense traffic exists, and what SAFs gate or skip (paper, section 5.3)."""
