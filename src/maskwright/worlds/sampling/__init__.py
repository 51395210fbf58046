"""Possible worlds of any method: listed, drawn, or walked by Markov chains."""
