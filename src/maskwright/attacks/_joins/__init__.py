"""Several tables about the same people, put together."""
