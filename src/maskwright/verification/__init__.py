"""Verification: a release folder is read back and counted anew; shares nothing with the searches."""
