"""Random whole policies from all ingredients, for a small table."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from maskwright.policy.policy import Policy
from tests.promise.small_engine import members
from tests.promise.tables import INSENSITIVE, SEPARATOR, SET, UNIT, Case

Plain = dict[str, Any]
LARGEST = ("1/4", "1/3", "1/2", "2/3", "3/4", "4/5")
LATTICE = ("optimal-lattice", "samarati", "incognito")


def random_policy(draw: random.Random, case: Case) -> Plain:
    """What a policy file would say."""
    method = _method(draw, case)
    policy: Plain = {"columns": _columns(draw, case, method), "method": method}
    recoding = _recoding(draw, case, method)
    if recoding is not None:
        policy["recoding"] = recoding
    if UNIT in case.names:
        policy["unit"] = UNIT
    if draw.random() < 0.5 and _has_missing(case):
        policy["missing"] = {"rows": "drop"}
    policy["require"] = _require(draw, case, method)
    return policy


def with_more_settings(draw: random.Random, case: Case, policy: Plain) -> Plain:
    """The same policy with some of the settings that `random_policy` leaves at their defaults."""
    columns = {name: dict(c) if isinstance(c, dict) else c for name, c in policy["columns"].items()}
    more: Plain = {}
    for name in case.quasi_identifiers:
        if draw.random() < 0.3:
            columns[name]["weight"] = draw.choice([0, 2, "1/2"])
        if draw.random() < 0.3:
            columns[name] |= draw.choice([{"levels": ["0", "1"]}, {"levels": ["1"]}])
        elif draw.random() < 0.2:
            more["keep"] = {name: draw.choice(["0", "1"])}
        elif "intervals" in columns[name].get("hierarchy", {}) and draw.random() < 0.5:
            columns[name]["finest"] = "1"
    for name in case.domains:
        values = _values(case, name)
        if name != SET and draw.random() < 0.5:
            named = draw.sample([*values, "never"], len(values))
            columns[name] |= draw.choice([{"order": named}, {"hierarchy": {"groups": {"some": named[:2]}}}])
    if draw.random() < 0.3:
        more["population"] = {"size": draw.choice([50, 1000])}
    own = [name for name in case.quasi_identifiers if _is_own(case, name)]
    if UNIT in case.names and own:
        more["unit"] = {"column": UNIT, "own": own}
    if draw.random() < 0.15 and policy["method"]["name"] in ("mondrian", "local-recoding"):
        more["method"] = policy["method"] | {"labels": "fixed"}
    if draw.random() < 0.3 and UNIT not in case.names:  # of a survey; people may be taken for what they hold
        column = draw.choice([*case.domains, "s"])
        numbers = all(v is not None and v.isdigit() for v in case.domains[column])
        more[draw.choice(["weight", "household"]) if numbers else "household"] = column
        more["population"] = {"size": 1000}
    if draw.random() < 0.3:
        more["require"] = [*policy["require"], _another_belief(draw, case)]
    if draw.random() < 0.3:
        more["prepare"] = {draw.choice([*case.quasi_identifiers, "s"]): {"missing": ["?"]}}
    if draw.random() < 0.3:
        more["missing"] = policy.get("missing", {}) | {"tokens": ["?"]}
    if "population" in more and _has_missing(case):
        more["missing"] = (
            policy.get("missing", {}) | more.get("missing", {}) | {"wildcard": draw.random() < 0.7}
        )
    if any(None in domain for domain in case.domains.values()) and draw.random() < 0.5:
        more["missing"] = more.get("missing", {}) | {"rows": "drop"}
    return {**policy, **more, "columns": columns}


UNPROVEN = (
    "changed secret", "changed column", "pseudonym", "lasting pseudonym", "moved dates", "direct identifiers",
    "some rows of each", "linked rows", "fixed labels", "method of others", "model of others",
)  # fmt: skip


def with_unproven(draw: random.Random, case: Case, policy: Policy, kind: str) -> Plain:
    """The same policy with an ingredient that no proof names; what `others` wrote goes by the name `foreign`."""
    plain = policy.to_dict()
    columns = {name: {"role": c} if isinstance(c, str) else dict(c) for name, c in plain["columns"].items()}
    secret = draw.choice([name for name in case.domains if name != SET])
    changed = draw.choice([{"round": 10}, {"noise": "10%"}])
    if kind == "changed secret":
        columns[secret]["publish"] = changed
    elif kind == "changed column":
        columns["pay"] = {"role": "insensitive", "publish": changed}
    elif kind in ("pseudonym", "lasting pseudonym"):
        columns["card"] = {"role": "identifier", "publish": "pseudonym"}
        columns["card"] |= {"stable": True, "group": "g"} if kind == "lasting pseudonym" else {}
    elif kind == "moved dates":
        columns |= {"card": {"role": "identifier"}, "day": {"role": "insensitive"}}
        plain["shift_dates"] = {"columns": ["day"], "within": 30, "person": "card"}
    elif kind == "direct identifiers":
        columns[draw.choice([*case.quasi_identifiers, secret])]["direct_identifiers"] = "allow"
    elif kind in ("some rows of each", "linked rows"):
        columns[UNIT] = {"role": "identifier"}
        rule = {"rows": draw.choice([1, 2])} if kind == "some rows of each" else {"publish": "pseudonym"}
        plain["unit"] = {"column": UNIT, **rule}
    elif kind == "fixed labels":
        plain["method"] = {"name": draw.choice(["mondrian", "local-recoding"]), "labels": "fixed"}
    elif kind == "method of others":
        plain["method"] = "foreign"
    else:
        use = draw.choice(["search", "gate"])
        plain["require"] = [*plain["require"], {"model": "foreign", "l": 2, "attribute": secret, "use": use}]
    return {**plain, "columns": columns}


def with_near_numbers(draw: random.Random, policy: Plain) -> Plain:
    """The same policy where nobody may come near to the secret, a number: beside its bounds on belief, or for them."""
    near = {
        "within": draw.choice(["1/9", "1/9", "1/3", "2/3"]),
        "max": draw.choice(["2/3", "3/4", "4/5", "9/10"]),
    }
    alone = draw.random() < 0.8
    others = [m for m in policy["require"] if not (alone and m["model"] == "belief")]
    return {**policy, "require": [*others, {"model": "belief", "attribute": "s", **near}]}


def _is_own(case: Case, name: str) -> bool:
    """Is the column the same in all rows of each person?"""
    at = case.names.index(name)
    return len({(owner, row[at]) for owner, row in zip(case.owners, case.known, strict=True)}) == len(
        case.people
    )


def _another_belief(draw: random.Random, case: Case) -> Plain:
    """A bound between the usual ones, or for somebody who knows more or less."""
    column = draw.choice([name for name in case.domains if name != SET])
    found: Plain = {"model": "belief", "attribute": column, "max": draw.choice(["2/5", "3/5", "9/10"])}
    if draw.random() < 0.5:
        return found | {"sets": _sets(draw, case, column)}
    return found | {"adversary": draw.choice(["learns", "journalist", "neighbour"])}


def _has_missing(case: Case) -> bool:
    return any(None in row for row in case.known) or any(
        None in d for n, d in case.domains.items() if n != SET
    )


def _columns(draw: random.Random, case: Case, method: Plain) -> Plain:
    columns: Plain = {}
    for name in case.names:
        if name == UNIT:
            columns[name] = "identifier"
        elif name == INSENSITIVE:
            columns[name] = {"role": "insensitive", "near_unique": draw.choice(["allow", "allow", "refuse"])}
        else:
            columns[name] = _quasi_identifier(draw, [str(row[case.names.index(name)]) for row in case.known])
    for name in case.domains:
        columns[name] = {"role": "sensitive"}
        if name == SET:
            columns[name]["multivalued"] = SEPARATOR
        elif draw.random() < (
            0.75 if method["name"] in ("greedy-grouping", "symmetric-grouping", "mask") else 0.25
        ):
            columns[name]["sensitive_sets"] = _sets(draw, case, name)
    return columns


def _quasi_identifier(draw: random.Random, values: list[str]) -> Plain:
    column: Plain = {"role": "quasi-identifier"}
    if values[0].isdigit() and draw.random() < 0.5:
        column["hierarchy"] = {"intervals": draw.choice([[2, 4], [5, 10, 20], [10]])}
    elif not values[0].isdigit() and draw.random() < 0.6:
        column["hierarchy"] = {"mask": "right"}
    return column


def _values(case: Case, name: str) -> list[str]:
    return [v for v in case.domains[name] if v is not None]


def _sets(draw: random.Random, case: Case, name: str) -> list[list[str]]:
    """Values that must not be inferred: one, two apart, or two together."""
    values = _values(case, name)
    one = draw.choice(values)
    if len(values) > 2 and draw.random() < 0.3:
        two = draw.sample(values, 2)
        return draw.choice([[two], [[two[0]], [two[1]]]])
    return [["never", one]] if draw.random() < 0.02 else [[one]]


def _method(draw: random.Random, case: Case) -> Plain:
    name = draw.choices(
        ["mondrian", *LATTICE, "local-recoding", "greedy-grouping", "symmetric-grouping", "anatomy",
         "alpha-k-local", "mask", "codip"],
        [26, 9, 5, 5, 6, 8, 8, 9, 2, 2, 30 if len(case.domains) > 1 else 0],
    )[0]  # fmt: skip
    if name == "codip":
        plan: Any = draw.choice(["greedy", "best", [["s"], ["t"]], [["s", "t"]]])
        if SET in case.domains:
            bits = sorted({v for cell in case.domains[SET] for v in members(cell, SEPARATOR)})
            every = [f"{SET}={v}" for v in bits]
            plan = draw.choice(["greedy", "best", [["s"], [SET]], [["s", every[0]], every[1:]]])
        found: Plain = {"name": name, "plan": plan}
        if draw.random() < 0.6:
            found["base"] = _one_table(draw, case, draw.choice(["mondrian", "optimal-lattice", "anatomy"]))
        for share in ("alpha", "beta"):
            if draw.random() < 0.25:
                found[share] = draw.choice(["1/4", "1/2", "3/4"])
        return found
    return _one_table(draw, case, name)


def _one_table(draw: random.Random, case: Case, name: str) -> Plain:
    options: Plain = {"name": name}

    def maybe(chance: float, key: str, *choices: Any) -> None:
        if draw.random() < chance:
            options[key] = draw.choice(choices)

    if name in LATTICE:
        maybe(0.5, "suppression", "25%", "50%", 1)
        maybe(0.4, "suppress", "failing-classes", "small-classes")
        maybe(0.3, "suppressed_rows", "star")
        maybe(0.3, "objective", "discernibility", "height", "precision")
    elif name == "local-recoding":
        maybe(0.4, "suppression", "25%", "50%", 1)
        maybe(0.3, "suppressed_rows", "star")
        maybe(0.3, "full_domain", False)
    elif name == "mondrian":
        maybe(0.4, "cut", "relaxed", "strict")
        if "cut" in options:
            maybe(0.2, "dimensions", "fallback")
        maybe(0.2, "ties", "random")
        maybe(0.2, "splits", "halves")
        maybe(0.15, "least", 2, 3)
        maybe(0.1, "min_child", 1, 2, 3)
        maybe(0.3, "choose", *(["range"] if "dimensions" in options else ["loss", "range"]))
    elif name == "greedy-grouping":
        maybe(0.3, "extend", "1/2")
        maybe(0.2, "l", 2, 3)
    elif name == "symmetric-grouping":
        maybe(0.15, "ways", 3)
        maybe(0.15, "min_child", 1, 2)
    elif name == "anatomy":
        maybe(0.7, "l", *([2] if len(_values(case, "s")) == 2 else [2, 2, 3]))
        maybe(0.3, "block", 3, 4)
        if len(options) == 1:
            maybe(0.2 if _values(case, "s")[0].isdigit() else 0.02, "by", "ranges")
        options["attribute"] = "s"
    elif name == "mask":
        options |= {"l": 2, "values": [_values(case, "s")[0]], "attribute": "s"}
        maybe(0.5, "base", "mondrian")
    if name in ("greedy-grouping", "symmetric-grouping"):
        maybe(0.3, "order", "hilbert")
    if name in ("mondrian", "greedy-grouping", "symmetric-grouping", "anatomy"):
        maybe(0.4, "labels", "ranges")
    if name not in ("anatomy", "mask") and "suppressed_rows" not in options:
        maybe(0.08, "anatomize", 2)
    return options


def _of_tables(method: Mapping[str, Any]) -> Mapping[str, Any]:
    """The method that groups the rows of a table."""
    return method["base"] if method["name"] == "codip" and "base" in method else method


def _recoding(draw: random.Random, case: Case, method: Mapping[str, Any]) -> Any:
    inner = _of_tables(method)["name"]
    name = draw.choices(
        ["generalise", "bucketize", "permute"], [1, 3, 2] if inner == "anatomy" else [6, 2, 2]
    )[0]
    if name == "generalise":
        return None
    found: Plain = {"name": name}
    if draw.random() < 0.3:
        found["quasi_identifiers"] = "generalised"
    if len(case.domains) > 1 and draw.random() < 0.4:
        found["together"] = [list(case.domains)]
    return found


def _require(draw: random.Random, case: Case, method: Plain) -> list[Plain]:
    name = _of_tables(method)["name"]
    found: list[Plain] = []
    if draw.random() < 0.75 or name == "mask":
        found.append({"model": "k-anonymity", "k": draw.choice([1, 2, 2, 2, 2, 2, 3, 3, 4])})
    if name == "alpha-k-local":
        found.append(
            {"model": "alpha-k-anonymity", "alpha": draw.choice(["1/2", "2/3"]), "k": 2, "attribute": "s"}
        )
    blind = name in (*LATTICE, "local-recoding")
    searched = draw.choices([0, 1, 2], [8, 2, 1] if blind else [5, 3, 1])[0]
    wholly = (
        "ck-safety",
        "m-confidentiality",
        "nt-closeness",
    )  # what a method that goes group by group cannot search for
    found += [
        m | ({} if blind or m["model"] not in wholly else {"use": "gate"})
        for m in _models(draw, case, searched)
    ]
    gates = draw.choices([0, 1, 2], [14, 5, 1])[0]
    found += [m | {"use": "gate"} for m in _models(draw, case, gates)]
    if draw.random() < 0.05:
        found.append({"model": draw.choice(["average-risk", "highest-risk"]), "max": "1/2", "use": "gate"})
    columns = [c for c in case.domains if draw.random() < 0.75] or list(case.domains)[:1]
    for column in columns:
        belief: Plain = {"model": "belief", "attribute": column}
        narrow = column != SET and draw.random() < 0.3
        belief["max"] = draw.choices(LARGEST, [2, 3, 5, 5, 4, 3] if narrow else [0, 1, 5, 8, 9, 4])[0]
        if narrow:
            belief["sets"] = _sets(draw, case, column)
        if draw.random() < 0.12:
            belief |= {"adversary": "insider", "facts": 1, "max": draw.choice(["2/3", "3/4", "4/5", "9/10"])}
        found.append(belief)
    return found


def _models(draw: random.Random, case: Case, n: int) -> list[Plain]:
    return [_model(draw, case) for _ in range(n)]


def _model(draw: random.Random, case: Case) -> Plain:
    """A model about sensitive values."""
    column = draw.choice(list(case.domains))
    if column == SET:
        return draw.choice(
            [
                {"model": "simple-l-diversity", "l": 2, "attribute": SET},
                {"model": "t-closeness", "t": "1/4", "attribute": SET},
            ]
        )
    numeric = all(v.isdigit() for v in _values(case, column))
    choices: list[Plain] = [
        {"model": "simple-l-diversity", "l": draw.choice([2, "3/2", "4/3", 3])},
        {"model": "simple-l-diversity", "l": draw.choice([2, "3/2", 3]), "sets": _sets(draw, case, column)},
        {"model": "simple-l-diversity", "l": 2, "values": [draw.choice(_values(case, column))]},
        {"model": "distinct-l-diversity", "l": 2},
        {"model": "entropy-l-diversity", "l": draw.choice(["3/2", 2])},
        {"model": "recursive-cl-diversity", "c": draw.choice([2, 3]), "l": 2},
        {"model": "alpha-k-anonymity", "alpha": draw.choice(["1/2", "2/3", "3/4"]), "k": draw.choice([1, 2])},
        {"model": "p-sensitive-k-anonymity", "p": 2, "k": 2, "attributes": [column]},
        {"model": "t-closeness", "t": draw.choice(["1/5", "1/4", "1/3", "1/2"])},
        {"model": "nt-closeness", "n": draw.choice([3, 4]), "t": draw.choice(["1/4", "1/3"])},
        {"model": "delta-disclosure", "delta": draw.choice(["1/2", 1]), "strict": draw.random() < 0.3},
        {"model": "beta-likeness", "beta": draw.choice(["1/2", 1]), "enhanced": draw.random() < 0.3},
        {"model": "ck-safety", "c": draw.choice(["3/4", "9/10", 1]), "k": 1},
        {"model": "m-confidentiality", "m": draw.choice(["3/2", 2])},
    ]
    if numeric:
        choices.append({"model": "ke-anonymity", "k": 2, "e": 3})
        choices.append({"model": "t-closeness", "t": "1/4", "distance": "ordered"})
    found = draw.choice(choices)
    return found if "attributes" in found else found | {"attribute": column}
