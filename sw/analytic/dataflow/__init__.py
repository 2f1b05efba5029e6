"""Step one, dataflow: dense traffic, from the mapping alone (paper, section 5.2)."""
