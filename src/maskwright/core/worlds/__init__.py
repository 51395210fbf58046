"""Possible worlds: the exact arithmetic of what an adversary may believe, apart from any release or pipeline.

A release fixes a partition of the rows and the multiset of sensitive values of each part. A *world* assigns
each multiset to its rows; all worlds are equally likely until the adversary uses the knowledge of the method
or of a few facts. Each module answers one question about the worlds that remain:

    credibility   classes were merged because one of them violated a threshold [Wong et al. 2007]
    general       the same for any model, and for several groups that share classes
    even_split    a split was refused
    greedy        a group was closed by greedy grouping, plain or randomised [Cormode et al. 2010]
    mask          the release was made by MASK
    posterior     the release was made by any method that can be run on a world (`algorithms`: the known ones)
    formula       the adversary knows a formula [Martin et al. 2007]
    joins         the adversary knows other values of the victim, or holds several releases
    absence       the adversary knows why somebody is missing
    bounds        how much can be believed at worst, before any data are seen
    queries       what a COUNT query shows on average

Results are `Fraction`s unless a result says otherwise. None means: no world remains, the belief is undefined.
"""
