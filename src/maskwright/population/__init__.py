"""From a sample to the population: what a table of some people says about everybody it was drawn from.

Every figure here is an *estimate*: it rests on a model of how people spread over the combinations of their
quasi-identifiers, and on a sample that was drawn as the survey says. None of them is a guarantee.
"""
