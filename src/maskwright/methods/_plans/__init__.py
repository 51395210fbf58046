"""Which tables a release with several sensitive attributes is split into."""
