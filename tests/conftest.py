"""For every test: what a Hypothesis test may take, since the machine may be busy."""

from hypothesis import settings

# A deadline measures the neighbours, not the code.
settings.register_profile("fiberloom", deadline=None)
settings.load_profile("fiberloom")
