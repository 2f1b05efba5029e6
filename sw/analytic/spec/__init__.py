"""Reads specifications: the YAML dialects of Timeloop and Sparseloop, v0.3 and v0.4."""
