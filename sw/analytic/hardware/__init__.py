"""Step three, micro-architecture: validity, cycles and energy (paper, section 5.4)."""
