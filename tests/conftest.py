"""Settings for all tests."""

from hypothesis import settings

# Machines are shared and noisy: how long one example takes says nothing.
settings.register_profile("default", deadline=None)
settings.load_profile("default")
