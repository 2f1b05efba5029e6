"""Format conversion: decoders, encoders and their control between the memory engine's ports."""
