"""The experiments of the five papers, one module per figure or table. `python -m experiments.run` runs them."""
