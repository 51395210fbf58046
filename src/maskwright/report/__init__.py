"""Results as self-contained HTML: the private report and the public data card."""
