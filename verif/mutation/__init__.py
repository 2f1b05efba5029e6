"""Breaks the hardware's source in small ways and sees which tests notice."""
