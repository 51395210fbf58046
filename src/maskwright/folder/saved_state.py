"""A grouping on disk, so that a release can be attacked later. As sensitive as the input: private/ only."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.domain.classes import Ancestors, ValueCounts
from maskwright.domain.grouping import (
    Allocation,
    Changes,
    Grouping,
    Labels,
    Rendering,
    Trace,
    allocated_classes,
)
from maskwright.domain.guards import Guards
from maskwright.domain.hierarchy import Hierarchy
from maskwright.domain.release import json_value
from maskwright.domain.summary import Joint, Owned, Shared, Summary
from maskwright.runtime import disk

STATE, NAMES, CENSUS = "state.npz", "state.json", "population.npz"


def part_folder(private: Path, name: str, parts: int) -> Path:
    """Where the state of a part of a release lies: a release with one part needs no folder for it."""
    return private if parts == 1 else private / name


def save_grouping(grouping: Grouping, folder: Path) -> None:
    """Write the summary, the allocation and the labels; arrays in one file, words in the other."""
    s, a = grouping.summary, grouping.allocation
    arrays: dict[str, Any] = {
        "codes": s.codes, "rows": s.rows, "sizes": s.sizes,
        "tuples": a.tuples, "groups": a.groups, "cell_rows": a.rows,
    }  # fmt: skip
    if a.cells is not None:
        arrays["cells"] = a.cells
    if grouping.ancestors is not None:
        arrays["parent"] = grouping.ancestors.parent
    if grouping.trace.together is not None:
        arrays["together"] = grouping.trace.together
    if (cells := s.cells) is not None:
        arrays |= {"joint_tuples": cells.tuples, "joint_values": cells.values, "joint_rows": cells.rows}
        if cells.people is not None:
            arrays["joint_people"] = cells.people
    for i, vc in enumerate(s.sensitive.values()):
        arrays |= {f"start{i}": vc.start, f"value{i}": vc.codes, f"count{i}": vc.counts}
    if s.weights is not None:
        arrays["weights"] = s.weights
    if (homes := s.households) is not None:
        arrays |= {"home_tuples": homes.tuples, "homes": homes.people, "home_rows": homes.rows}
    if s.shared is not None:
        arrays |= {"shared_tuples": s.shared.tuples, "shared_people": s.shared.people}
        for i, name in enumerate(s.sensitive):
            arrays |= {f"shared{i}_{j}": part for j, part in enumerate(s.shared.values[name])}
    if s.owned is not None:
        arrays |= {"owned_tuples": s.owned.tuples, "owned_people": s.owned.people, "owned_rows": s.owned.rows}
        for i, vc in enumerate(s.owned.values.values()):
            arrays |= {f"owned{i}_start": vc.start, f"owned{i}_value": vc.codes, f"owned{i}_count": vc.counts}
    for i, labels in enumerate(grouping.labels):
        arrays |= {f"label{i}": labels.of_group, f"coverage{i}": labels.coverage}
    for i, rendering in enumerate(grouping.renderings or ()):
        labels = rendering.labels
        arrays |= {f"shown{i}": labels.of_group, f"shown_coverage{i}": labels.coverage}
    for i, vc in enumerate((grouping.published or {}).values()):
        arrays |= {
            f"published{i}_start": vc.start,
            f"published{i}_value": vc.codes,
            f"published{i}_count": vc.counts,
        }
    if (changes := grouping.changes) is not None:
        parts = changes.cells, changes.groups, changes.codes, changes.rows
        arrays |= {f"changes{i}": part for i, part in enumerate(parts)}
    np.savez(folder / STATE, **arrays)
    words = {
        "format": 1,
        "attributes": [h.to_dict() for h in s.attributes],
        "sensitive": [
            {"name": n, "values": list(vc.values), "ordered": vc.ordered} for n, vc in s.sensitive.items()
        ],
        "labels": [{"attribute": x.attribute, "texts": list(x.texts)} for x in grouping.labels],
        "renderings": [
            {"texts": list(r.labels.texts), "level": r.level, "ground": list(r.ground)}
            for r in grouping.renderings or ()
        ],
        "levels": grouping.levels,
        "starred": grouping.starred,
        "labelling": grouping.labelling,
        "groups": grouping.classes.n,
        "search": json_value(grouping.search),
        "trace": {n: v for n, v in asdict(grouping.trace).items() if n != "together"},
        "published": None if grouping.published is None else list(grouping.published),
        "changed": None if grouping.changes is None else grouping.changes.attribute,
        "shared_people": s.shared.n_people if s.shared else None,
        "owned_people": s.owned.n_people if s.owned else None,
        "dropped_missing": s.dropped_missing,
        "dropped_per_person": s.dropped_per_person,
        "guards": None if s.guards is None else {name: one.as_dict() for name, one in s.guards.items()},
    }
    (folder / NAMES).write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")


def load_grouping(folder: Path) -> Grouping:
    """Read back what `save_grouping` wrote."""
    words = disk.read_json(folder / NAMES)
    with np.load(folder / STATE, allow_pickle=False) as data:
        arrays = {name: data[name] for name in data.files}
    sensitive = {
        item["name"]: ValueCounts(
            tuple(item["values"]),
            arrays[f"start{i}"],
            arrays[f"value{i}"],
            arrays[f"count{i}"],
            item["ordered"],
        )
        for i, item in enumerate(words["sensitive"])
    }
    shared = None
    if words["shared_people"] is not None:
        shared = Shared(
            arrays["shared_tuples"], arrays["shared_people"], words["shared_people"],
            {name: tuple(arrays[f"shared{i}_{j}"] for j in range(3)) for i, name in enumerate(sensitive)},
        )  # fmt: skip
    joint = None
    if "joint_tuples" in arrays:
        people = arrays.get("joint_people")
        joint = Joint(arrays["joint_tuples"], arrays["joint_values"], arrays["joint_rows"], people)
    alone = joint is None or joint.people is None
    summary = Summary(
        tuple(Hierarchy.from_dict(h) for h in words["attributes"]),
        arrays["codes"], arrays["rows"], arrays["sizes"], sensitive, shared, words["dropped_missing"],
        joint if alone else None, _owned(words.get("owned_people"), arrays, sensitive), arrays.get("weights"),
        _households(arrays), None if alone else joint, dropped_per_person=words.get("dropped_per_person", 0),
        guards=_guards(words.get("guards")),
    )  # fmt: skip
    allocation = Allocation(arrays["tuples"], arrays["groups"], arrays["cell_rows"], arrays.get("cells"))
    labels = tuple(
        Labels(item["attribute"], tuple(item["texts"]), arrays[f"coverage{i}"], arrays[f"label{i}"])
        for i, item in enumerate(words["labels"])
    )
    levels = tuple(words["levels"]) if words["levels"] is not None else None
    classes = allocated_classes(summary, allocation, words["groups"])
    ancestors = Ancestors(classes.n, arrays["parent"]) if "parent" in arrays else None
    return Grouping(
        summary, allocation, labels, classes, levels, words["starred"], dict(words["search"]),
        _published(words["published"], arrays, sensitive), _changes(words["changed"], arrays), ancestors,
        renderings=_renderings(words.get("renderings"), arrays, labels), trace=_trace(words, arrays),
        labelling=words.get("labelling", "levels"),
    )  # fmt: skip


def _trace(words: dict[str, Any], arrays: dict[str, Any]) -> Trace:
    """What attacks rely on of a run; releases of earlier versions have it among the figures of the report."""
    search = words["search"]
    known, together = words.get("trace"), arrays.get("together")
    earlier = (
        known is None or "crossings" in known
    )  # then it is not known which groups a refused cut is about
    if earlier and (search.get("crossings") or search.get("dimensions") == "fallback"):
        together = np.zeros(words["groups"], dtype=np.int64)
    first = search.get("dropped") == "at random"
    if known is not None:
        kept = {"dropped_first": first} | {n: v for n, v in known.items() if n != "crossings"}
        return Trace(**kept, together=together)
    dropped = int(search.get("dropped_for_their_values") or 0)
    return Trace(
        search.get("optimal") is not False, search.get("nodes"), search.get("bucket"), dropped,
        search.get("attribute"), search.get("l"), first, together,
    )  # fmt: skip


def _households(arrays: dict[str, Any]) -> Owned | None:
    """Whose household each row belongs to, where the policy named it."""
    if "homes" not in arrays:
        return None
    homes = arrays["homes"]
    return Owned(arrays["home_tuples"], homes, arrays["home_rows"], int(homes.max(initial=-1)) + 1)


def _guards(stored: dict[str, Any] | None) -> dict[str, Guards] | None:
    """The nodes that guard somebody of each tuple, where a requirement named them."""
    return None if stored is None else {name: Guards.from_dict(one) for name, one in stored.items()}


def _owned(n_people: int | None, arrays: dict[str, Any], sensitive: dict[str, ValueCounts]) -> Owned | None:
    """Whose rows they are, where a person may have several."""
    if n_people is None:
        return None
    values = {
        name: ValueCounts(
            vc.values,
            arrays[f"owned{i}_start"],
            arrays[f"owned{i}_value"],
            arrays[f"owned{i}_count"],
            vc.ordered,
        )
        for i, (name, vc) in enumerate(sensitive.items())
    }
    return Owned(arrays["owned_tuples"], arrays["owned_people"], arrays["owned_rows"], n_people, values)


def _renderings(
    stored: list[dict[str, Any]] | None, arrays: dict[str, Any], labels: tuple[Labels, ...]
) -> tuple[Rendering, ...] | None:
    """How the quasi-identifiers were written, where that is not what the method called them."""
    if not stored:
        return None
    result = []
    for i, (item, old) in enumerate(zip(stored, labels, strict=True)):
        shown = Labels(old.attribute, tuple(item["texts"]), arrays[f"shown_coverage{i}"], arrays[f"shown{i}"])
        result.append(Rendering(shown, item["level"], tuple(item["ground"])))
    return tuple(result)


def _published(
    names: list[str] | None, arrays: dict[str, Any], sensitive: dict[str, ValueCounts]
) -> dict[str, ValueCounts] | None:
    """The sensitive counts as published, where a method distorted them."""
    if names is None:
        return None
    result = {}
    for i, name in enumerate(names):
        start, codes, counts = (arrays[f"published{i}_{part}"] for part in ("start", "value", "count"))
        result[name] = ValueCounts(sensitive[name].values, start, codes, counts, sensitive[name].ordered)
    return result


def _changes(attribute: str | None, arrays: dict[str, Any]) -> Changes | None:
    return None if attribute is None else Changes(attribute, *(arrays[f"changes{i}"] for i in range(4)))


def save_census(census: Summary, folder: Path) -> None:
    """Write the population as it was counted, for the journalist; its hierarchies are those of the grouping."""
    arrays: dict[str, Any] = {"codes": census.codes, "rows": census.rows, "sizes": census.sizes}
    if census.shared is not None:
        arrays |= {"tuples": census.shared.tuples, "people": census.shared.people}
    np.savez(folder / CENSUS, **arrays)


def load_census(folder: Path, attributes: tuple[Hierarchy, ...]) -> Summary | None:
    """Read back what `save_census` wrote; None where there was no population table."""
    if not (folder / CENSUS).is_file():
        return None
    with np.load(folder / CENSUS, allow_pickle=False) as data:
        shared = None
        if "people" in data:
            shared = Shared(data["tuples"], data["people"], int(data["people"].max(initial=-1)) + 1)
        return Summary(attributes, data["codes"], data["rows"], data["sizes"], {}, shared)
