"""The pipeline: from a policy and a table to a release folder; `publish.py` is read top to bottom."""
