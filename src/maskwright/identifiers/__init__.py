"""Direct identifiers: what may be published in place of a name or a number that tells people apart."""
