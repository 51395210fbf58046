"""Balanced cuts: whoever knows the method believes exactly what the published group shows.

What is asked of a method here: it drops rows at random, before anything is looked at, until the rows that are left
can be divided evenly; it tests *cuts* of groups of rows, which are chosen from quasi-identifiers and from how earlier
tests came out; a test is a symmetric function of the sensitive values in the children of the cut (all of them must
satisfy the models, and have enough rows); and what it publishes is the groups at the end, each with its rows'
sensitive values in no order. A *world* deals the values of each published group anew to its rows. The adversary knows
everything but who holds which value, and is left with the worlds in which every test comes out as it did: then, and
only then, the same groups are published. All these worlds are equally likely.

**Lemma A (one cut per group).** If every tested cut divides its group into children of equal size, and one cut is
tested per group, then the belief that somebody holds a value is exactly its share in the published group.

*Proof.* Tests of cuts that were accepted come out alike in every world, because their children are unions of published
groups, whose values stay. What is left is the one refused cut of each published group. Permute its children: give the
rows of each child the values of another one (they are equally many). The test is symmetric, so that it is refused
again; so every such permutation, and every permutation of rows inside a child, maps the worlds that are left to worlds
that are left, one to one. These permutations move any row of the group to any other. So in as many worlds as one row
holds a value, any other row of the group holds it. ∎

**Lemma B (crossed cuts: further cuts after a refusal).** Keep for every group its *cells*: at the start one cell, all
rows. A cut divides *every cell* into equal parts along the chosen dimension, at the cell's own median; its children
are the unions of the first parts, of the second parts, … Accepted: every child goes on with its own parts of the
cells. Refused: the group goes on with the parts as its cells. Then the belief that somebody holds a value is exactly
its share in the published group, whatever the models, the number of sensitive attributes and the order of dimensions.

*Proof.* Number the parts of every cut. A row of a published group is found by its numbers at the cuts that were tested
on the way down to it: at accepted cuts all rows of the group have the same number; at refused ones every number
occurs, and every combination of numbers equally often, because each later cut divided every cell evenly. Take one
refused cut of a group G, and a permutation of its parts. In every published group inside G, at once, give the rows
of each cell the values of the cell that has the permuted number at this cut and the same numbers at all others. Then
(1) published groups keep their values, so that accepted cuts are accepted again; (2) the children of the refused cut
are permuted among themselves, so that it is refused again; (3) a child of any other refused cut keeps its values: it
is made of whole cells that are told apart by their number at *that* cut, which no row changes. So all tests come out
as before. The same is true of any permutation of rows inside a last cell, which no test divides. Together these move
any row of a published group to any other, and the conclusion is that of Lemma A. ∎

**Conditions.** Each of them is needed.

* Children are equal, in every cell: rows that do not divide are dropped at random beforehand, by their number alone.
* Which cut is tested next follows from quasi-identifiers, from random draws that look at no value, and from how
  earlier tests came out (an exchange leaves that as it is); never from values directly.
* A test looks at the children's sensitive values (and sizes) only, and treats the children alike.
* Nothing else looks at values: no row is dropped, and no group divided further (anatomized), because of them; the
  parameters were not chosen after looking at the outcome. Whether anything is published at all may depend on values,
  as long as it follows from the groups and their values.
* Who is not published learns and gives away nothing: dropped at random, such a person keeps the prior of the table.
* Groups whose labels are alike are one class to the reader. Each of them satisfies the models, so that a bound on the
  share of a value is a bound on belief for them, too; the share that the class shows is an average of theirs.

**Checked** by `tests/methods/test_crossed_cuts.py`, which runs the product on every world of hundreds of tables of 8
and 16 rows in which a cut was accepted below a refused one, under several models and arbitrary predicates, one
sensitive column and two; the same enumeration fails when the cells are taken out. Lemma A by itself, with halves and
thirds: `tests/methods/test_mondrian.py`.
"""

from __future__ import annotations

from maskwright.domain.promise import Lemma

SHOWN = "an adversary who knows the method believes exactly what each published group shows"
COMMON = (
    "rows that do not divide evenly are dropped at random beforehand",
    "cuts are chosen from quasi-identifiers, chance, and how earlier tests came out",
    "a test looks at the children's values alone, and treats the children alike",
    "nothing else looks at sensitive values",
)

ONE_CUT = Lemma(
    "A",
    SHOWN,
    ("the children of every cut are of equal size", "one cut is tested per group", *COMMON),
    "tests/methods/test_mondrian.py::test_lemma_a_belief_is_the_group_fraction",
    __name__,
)
CROSSED_CUTS = Lemma(
    "B",
    SHOWN,
    (
        "every cut divides every cell of its group evenly",
        "a refused cut leaves its parts as the cells",
        *COMMON,
    ),
    "tests/methods/test_crossed_cuts.py::test_lemma_b_belief_is_the_group_fraction",
    __name__,
)
