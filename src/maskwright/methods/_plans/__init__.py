"""Plans of codip: which sensitive attributes share a table, and how good such a plan can be."""
