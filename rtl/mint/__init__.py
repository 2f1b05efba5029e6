"""Format conversion (MINT): building blocks that take one vector a cycle."""
