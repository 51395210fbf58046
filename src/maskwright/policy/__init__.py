"""A policy: what the publisher wants, read from YAML, bound to a table, and calibrated."""
