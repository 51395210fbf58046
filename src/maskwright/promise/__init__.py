"""What is guaranteed, and why: the lemmas, one file each, and the promise of a whole policy (`policy_promise.py`).

A policy is a function from a table to everything that its run makes public. It is *guaranteed* to keep a bound on
belief when for every table, every release that it can make, every person of the table (published or not) and every
secret, the probability of the secret given the release and what the adversary knows is at most the bound. The prior
gives equal weight to every assignment of sensitive values to rows that is consistent with what is public (random
worlds); somebody who is not published keeps the prior of the whole table. Whatever no proof names is *measured*.
"""
