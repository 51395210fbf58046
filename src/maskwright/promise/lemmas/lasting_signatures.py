"""Lasting signatures: all releases of a sequence together let nobody believe more than one of them shows.

Everybody has a *signature*, the set of values of the first group that the person was in; in every release the person
is in a group whose published values are exactly these, each once [Xiao, Tao 2007: m-invariance].

**Lemma (signatures).** If newcomers are put into buckets by Anatomy with random picks among themselves alone, and the
people of a signature are dealt to groups of it at random, as many groups as the most frequent value needs, then who
has all releases, and knows who came and went and the method, believes that somebody holds a value of the signature
with exactly one over its size, at most 1/l.

*Proof.* Let σ permute the values of one signature S, and let π(world) be the world in which everybody with this
signature holds σ of what they hold. Every group of S shows all of S, before and after. Newcomers of S made whole
buckets, so that each value of S has equally many of them and the multiset of the newcomers' values stays; Anatomy's
picks are uniform among the rows of a value, so that the same buckets have the same probability. How many groups S
needs is the largest count of its values among those who are present, which σ only renames, and the dealing is uniform
for each value. Nothing else looks at values. So π keeps the likelihood of everything that is published; the cyclic
permutations of S make each value of a person equally likely. ∎

A newcomer who is published *alone* gets l − 1 other values, every choice of the declared values with the same chance:
any of the l values leads to the same set with the same probability. There the values of the domain are taken to be
equally likely beforehand; among newcomers who fill buckets nothing is assumed but that people are exchangeable.

**Conditions.** Values do not change; the register of signatures is kept; no earlier release is followed by two.
Filling a gap with a newcomer who happens to hold the value, as the original algorithm does, would break it: a gap that
stays tells that nobody among the newcomers held its value.

**Checked** by `tests/methods/test_lasting_groups.py`: all worlds and all random choices of up to six people and three
releases, with people who come and go; filling gaps is caught there.
"""

from __future__ import annotations

from maskwright.domain.promise import Lemma

LASTING = Lemma(
    "signatures",
    "somebody who has all releases of a sequence believes nothing more about anybody than one of them shows",
    (
        "everybody stays in groups with the same values, each once",
        "newcomers are grouped among themselves, with random picks, or alone",
        "values do not change, and each release is followed by one",
    ),
    "tests/methods/test_lasting_groups.py",
    __name__,
)
