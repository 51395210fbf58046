"""Nothing in public/ is private: secret markers in everything that is not published, looked for in every byte."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

import maskwright as mw
from maskwright.verification.verify import verify_folder

MARK = "Xq7"  # begins every secret; chance does not write it
CITIES = {"north": ["Arn", "Bex"], "south": ["Cul", "Dov"]}
RARE = f"{MARK}RareRegion"


def table(path: Path, exact: bool) -> Path:
    """Forty people of two regions, and two of a third one who will be suppressed with all that they alone have."""
    known = "" if exact else MARK
    rows = []
    for i in range(40):
        region = "north" if i % 2 else "south"
        city = known + CITIES[region][i // 2 % 2]
        disease = ["flu", "asthma", "ulcer", "cough"][i // 2 % 4]
        rows.append([f"{MARK}Name{i}", city, str(20 + i % 4), disease, "AB"[i % 2], f"{MARK}Note{i}"])
    alone = [f"{MARK}Plague", f"{MARK}Ward", f"{MARK}Token"]
    rows += [[f"{MARK}Gone{i}", f"{MARK}Ely{i}", "98", *alone] for i in range(2)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "city", "age", "disease", "ward", f"{MARK}Column"])
        writer.writerows(rows)
    return path


def policy(folder: Path, exact: bool, **changes: Any) -> Path:
    """A policy whose comments, file names and unused labels are secret too."""
    known = "" if exact else MARK
    lines = [f"{known}{city};{region}" for region, cities in CITIES.items() for city in cities]
    lines += [f"{MARK}Ely{i};{RARE}" for i in range(2)] + [f"{MARK}Unused;{MARK}UnusedRegion"]
    (folder / f"{MARK}Tree.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    values: dict[str, Any] = {
        "version": 1,
        "missing": {"tokens": [f"{MARK}Token"]},
        "columns": {
            "name": "identifier",
            "city": {
                "role": "quasi-identifier",
                "hierarchy": {"file": f"{MARK}Tree.csv"},
                "levels": ["1", "2"],
            },
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20]}},
            "disease": "sensitive",
            "ward": {"role": "insensitive", "near_unique": "allow"},
        },
        "require": [
            {"model": "k-anonymity", "k": 4},
            {"model": "distinct-l-diversity", "l": 2, "use": "gate"},
        ],
        "method": {"name": "optimal-lattice", "suppression": "10%"},
    }
    path = folder / "policy.yaml"
    text = f"# {MARK}Comment\n" + yaml.safe_dump(values | changes, sort_keys=False)
    path.write_text(text, encoding="utf-8")
    return path


def everything(folder: Path) -> dict[str, bytes]:
    """The bytes of each file and its name; of a Parquet file also what compression hides."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        found[path.name] = path.name.encode() + path.read_bytes()
        if path.suffix == ".parquet":
            file = pq.ParquetFile(path)
            shown = [str(file.schema_arrow), str(file.metadata.metadata), str(file.read().to_pydict())]
            shown += [str(file.metadata.row_group(g).to_dict()) for g in range(file.num_row_groups)]
            found[path.name + " read"] = "\n".join(shown).encode()
    return found


GROUPS = [
    {"name": "bucketize", "quasi_identifiers": "generalised"},
    {"name": "permute", "quasi_identifiers": "generalised"},
]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    "recoding", ["generalise", *GROUPS, "bucketize", "permute"],
    ids=["generalise", "bucketize-generalised", "permute-generalised", "bucketize", "permute"],
)  # fmt: skip
def test_no_secret_is_in_any_byte(tmp_path: Path, recoding: Any, kind: str) -> None:
    exact = recoding in ("bucketize", "permute")  # these publish the cities themselves
    source = table(tmp_path / f"{MARK}Input.csv", exact)
    made = policy(tmp_path, exact, recoding=recoding, output={"format": kind})
    (tmp_path / f"{MARK}Folder").mkdir()
    release = mw.anonymize(source, mw.Policy.load(made), tmp_path / f"{MARK}Folder" / "r")
    assert release.grouping.dropped_rows == 2, "the test must drop somebody"
    assert release.path is not None
    public = everything(release.path / "public")
    assert {"data-card.html", "data-dictionary.json", "manifest.json"} < set(public)
    assert {name for name, content in public.items() if MARK.encode() in content} == set()
    private = b"".join(everything(release.path / "private").values())
    assert MARK.encode() in private, "the markers must be where they may be"


@pytest.mark.parametrize(
    "method",
    [
        {"name": "mask", "l": 2, "values": ["flu"], "suppression": "10%"},
        {"name": "mondrian", "cut": "balanced"},
        {"name": "local-recoding"},
        {"name": "samarati", "suppression": "10%"},
        {"name": "incognito", "suppression": "10%", "suppressed_rows": "star"},
    ],
    ids=lambda method: str(method["name"]),
)
def test_whatever_the_method(tmp_path: Path, method: dict[str, Any]) -> None:
    """Methods that keep the two rare people still hide names, notes, comments, files and unused labels."""
    source = table(tmp_path / f"{MARK}Input.csv", exact=True)
    made = policy(tmp_path, True, method=method, require=[{"model": "k-anonymity", "k": 2}])
    release = mw.anonymize(source, mw.Policy.load(made), tmp_path / "r")
    content = b"".join(everything(tmp_path / "r" / "public").values()).decode("utf-8")
    secrets = ["Name", "Note", "Column", "Comment", "Input", "Tree", "Unused", "Token", "Gone"]
    assert [s for s in secrets if MARK + s in content] == []
    published = set(release.grouping.published_classes.sensitive["disease"].values)
    assert "flu" in published and "flu" in content


def test_the_card_is_a_function_of_public_files(tmp_path: Path) -> None:
    """Made again from the other files of public/, it is the same."""
    import json

    from maskwright.report.card import data_card

    source = table(tmp_path / "input.csv", exact=True)
    made = policy(tmp_path, True, recoding="bucketize")
    mw.anonymize(source, mw.Policy.load(made), tmp_path / "r", seed=7)
    public = tmp_path / "r" / "public"
    manifest = json.loads((public / "manifest.json").read_bytes())
    dictionary = json.loads((public / "data-dictionary.json").read_bytes())
    again = data_card(dictionary, manifest["promised"], manifest["seeded"])
    assert again == (public / "data-card.html").read_text(encoding="utf-8")


def test_the_card_says_what_labels_are_that_differ_from_class_to_class(tmp_path: Path) -> None:
    """There is no level of which they could be the name."""
    rows = "".join(f"{20 + i},{'fm'[i % 2]}\n" for i in range(40))
    (tmp_path / "input.csv").write_text(f"age,sex\n{rows}", encoding="utf-8")
    age = {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}}
    made = {
        "version": 1, "unit": "none", "columns": {"age": age, "sex": {**age, "hierarchy": "suppress"}},
        "require": [{"model": "k-anonymity", "k": 5}], "method": {"name": "mondrian"},
    }  # fmt: skip
    mw.anonymize(tmp_path / "input.csv", made, tmp_path / "r")
    card = (tmp_path / "r" / "public" / "data-card.html").read_text(encoding="utf-8")
    assert "coarsened class by class, here more, there less or not at all" in card
    assert "recoded to level" not in card


def with_sets(path: Path) -> Path:
    """The table with a column of sets besides; one value of it occurs only in the rows that are dropped."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    symptoms = ["cold;fever", "cold", "fever", "", "pain;cold", "pain"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*header, "symptoms"])
        for i, row in enumerate(rows):
            writer.writerow([*row, symptoms[i % 6] if i < 40 else f"{MARK}Symptom;cold"])
    return path


@pytest.mark.parametrize("method", ["codip", "optimal-lattice"])
def test_sets_of_values_and_several_tables(tmp_path: Path, method: str) -> None:
    """A value that nobody in the release has is named nowhere, not even as a value that could have been."""
    source = with_sets(table(tmp_path / f"{MARK}Input.csv", exact=False))
    made = yaml.safe_load(policy(tmp_path, False).read_text(encoding="utf-8"))
    made["columns"]["symptoms"] = {"role": "sensitive", "multivalued": ";"}
    diverse = {"model": "simple-l-diversity", "l": "6/5", "attribute": "symptoms", "use": "gate"}
    made["require"] = [made["require"][0], diverse]
    if method == "codip":
        base = {"name": "optimal-lattice", "suppression": "10%"}
        made["method"] = {"name": "codip", "plan": [["disease"], ["symptoms"]], "base": base}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(made), encoding="utf-8")
    release = mw.anonymize(source, mw.Policy.load(tmp_path / "policy.yaml"), tmp_path / "r")
    assert all(grouping.dropped_rows == 2 for grouping in release.groupings)
    public = everything(tmp_path / "r" / "public")
    assert b"symptoms=fever" in public["manifest.json"], "what is promised of others is there"
    assert verify_folder(tmp_path / "r").ok
    assert {name for name, content in public.items() if MARK.encode() in content} == set()


def test_who_has_several_rows_is_not_told(tmp_path: Path) -> None:
    source = table(tmp_path / f"{MARK}Input.csv", exact=False)
    made = policy(tmp_path, False, unit="name")
    release = mw.anonymize(source, mw.Policy.load(made), tmp_path / "r")
    assert release.grouping.dropped_rows == 2
    public = everything(tmp_path / "r" / "public")
    assert {name for name, content in public.items() if MARK.encode() in content} == set()
