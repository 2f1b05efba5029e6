"""Formal proofs of single blocks: contracts stated about ports, and the runner that gives them to SymbiYosys."""
