"""Possible worlds: the exact arithmetic of what an adversary may believe, apart from any release or pipeline.

A release fixes a partition of the rows and the multiset of sensitive values of each part. A *world* assigns
each multiset to its rows; all worlds are equally likely until the adversary uses the knowledge of the method
or of a few facts. Each module answers one question about the worlds that remain:

counting/
    violation_counts     classes hold so many sensitive rows, and some exceeds its cap; exact, or in floating point
    credibility          classes were merged because one of them violated a threshold [Wong et al. 2007]
    general_credibility  the requirement was any other, or rows of a class lie in several groups
    group_beliefs        a group was closed by greedy grouping, or a split was refused; bounds [Cormode et al. 2010]
    mask_worlds          the release was made by MASK
    multisets, binomial, counting_limits: the tools
sampling/
    possible_worlds      the release was made by a method that can be run on a world
    world_sampler        which worlds such a method publishes again: listed, drawn, or walked by Markov chains
    belief_intervals     what follows from those worlds, with stated confidence
    choices              every sequence of random choices that a method can make
statements/
    language             what an adversary knows, as text
    fact_beliefs         the adversary knows a formula [Martin et al. 2007], other values of the victim, or releases
    disclosure           the worst that k facts can do, alone or on top of any set of worlds
reference_methods        the papers' methods and COUNT queries, as plain functions of rows (docs/worked-examples)

Results are `Fraction`s unless a result says otherwise. None means: no world remains, the belief is undefined.
"""
