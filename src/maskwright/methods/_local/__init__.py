"""Local recoding: groups of tuples with labels of their own, and how failing groups are repaired."""
