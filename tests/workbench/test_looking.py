"""The table and a release beside it: rows, conditions, classes with their people, two columns; what stays hidden."""

from __future__ import annotations

import csv
import io
import json
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.errors import Cancelled
from maskwright.runtime.events import Event, Progress
from maskwright.workbench.before_after import class_members, listed_classes, parts_beside
from maskwright.workbench.two_columns import crossed_columns, shown_columns
from maskwright.workbench.worker import KINDS, WorkerRun
from tests.workbench.conftest import Bench, people

ROWS = list(csv.DictReader(io.StringIO(people())))
COLUMNS = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20]}},
    "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "town": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "diagnosis": "sensitive",
}


def post(bench: Bench, address: str, status: int = 200, **body: Any) -> Any:
    answer = bench.client.post(address, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_rows_are_chosen_and_sorted_and_identifiers_are_hidden(bench: Bench) -> None:
    project = bench.opened()
    here = f"/api/projects/{project}/rows"
    old = {"column": "age", "how": "least", "text": "60"}
    porto = {"column": "town", "how": "holds", "text": "pORT"}
    found = post(bench, here, having=[old, porto], order="age", descending=True)
    wanted = sorted(
        (r for r in ROWS if int(r["age"]) >= 60 and r["town"] == "Porto"), key=lambda r: -int(r["age"])
    )
    assert found["number"] == len(wanted) > 0
    at = {name: i for i, name in enumerate(found["columns"])}
    assert [row[at["age"]] for row in found["rows"]] == [r["age"] for r in wanted][:50]
    assert found["hidden"] == ["name"]
    assert {row[at["name"]] for row in found["rows"]} == {None}
    rest = post(bench, here, first=200)
    assert (rest["number"], len(rest["rows"])) == (240, 40)
    for asked in ({"order": "name"}, {"having": [{"column": "name", "text": "Person 001"}]}):
        assert "is not shown" in post(bench, here, 422, **asked)["error"]
    spread = post(bench, f"/api/projects/{project}/columns/{at['age']}/profile")
    assert sum(n for _, n in spread["bars"]) == 240
    assert "hidden" in post(bench, f"/api/projects/{project}/columns/{at['name']}/profile", 422)["error"]


@pytest.fixture(scope="module", params=["optimal-lattice", "mondrian", "anatomy"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("beside")
    (place / "people.csv").write_text(people(), encoding="utf-8")
    policy: dict[str, Any] = {"version": 1, "unit": "none", "columns": COLUMNS, "method": request.param}
    policy["require"] = [{"model": "k-anonymity", "k": 4}]
    if request.param == "anatomy":
        policy |= {"require": [{"model": "simple-l-diversity", "l": 3}], "recoding": "bucketize"}
        policy["method"] = {"name": "anatomy", "l": 3}
    mw.anonymize(place / "people.csv", policy, place / "release", seed=1)
    return place / "release"


def published(folder: Path) -> list[dict[str, str]]:
    names = ("data.csv", "quasi-identifiers.csv")
    [table] = [p for p in (folder / "public").iterdir() if p.name in names]
    with table.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_classes_are_those_of_the_published_file(folder: Path) -> None:
    """Against the bytes on disk: their sizes, and that everybody of the table is in exactly one of them."""
    [part, *_] = parts_beside(folder)
    found = listed_classes(part, {}, None, False, 0)["classes"]
    more = listed_classes(part, {}, None, False, 50)["classes"]
    if not part.apart:
        names = list(COLUMNS)[:3]
        expected = Counter(tuple(row[c] for c in names) for row in published(folder))
        shown = {tuple(c["labels"]): c["rows"] for c in [*found, *more]}
        assert shown.items() <= expected.items()
        assert len(shown) == min(100, len(expected))
    everybody: Counter[tuple[str, ...]] = Counter()
    first = 0
    while page := listed_classes(part, {}, None, False, first)["classes"]:
        for one in page:
            members = class_members(part, one["number"])
            assert members["rows"] == one["rows"] == sum(n for *_, n in members["people"])
            everybody.update({tuple(key): n for *key, n in members["people"]})
        first += 50
    everybody.update({tuple(key): n for *key, n in class_members(part, -1)["people"]})
    assert everybody == Counter((r["age"], r["sex"], r["town"], r["diagnosis"]) for r in ROWS)


def test_classes_are_chosen_by_their_labels_and_sorted(folder: Path) -> None:
    [part, *_] = parts_beside(folder)
    found = listed_classes(part, {"sex": "f"}, "rows", True, 0)
    assert all("F" in c["labels"][1] for c in found["classes"])
    sizes = [c["rows"] for c in found["classes"]]
    assert sizes == sorted(sizes, reverse=True)


def test_two_columns_before_and_after(folder: Path) -> None:
    [part, *_] = parts_beside(folder)
    found = crossed_columns(part, "sex", "diagnosis", "not read")
    counted = Counter((r["sex"], r["diagnosis"]) for r in ROWS)
    before = found["before"]
    if "F" in before["down"]:
        for i, sex in enumerate(before["down"]):
            assert dict(zip(before["across"], before["counts"][i], strict=True)) == {
                d: counted[sex, d] for d in before["across"]
            }
    after = found["after"]
    if part.apart:  # what a reader of the buckets expects: the margins are exact, the inside is not told
        assert np.sum(after["counts"]) == pytest.approx(len(published(folder)), abs=1)
        assert "does not say" in found["note"]
    else:
        rows = Counter((r["sex"], r["diagnosis"]) for r in published(folder))
        shown = {(a, b): n for a, line in zip(after["down"], after["counts"], strict=True)
                 for b, n in zip(after["across"], line, strict=True)}  # fmt: skip
        assert {k: n for k, n in shown.items() if n} == rows


MORE = [
    {
        **row,
        "wing": "NS"[i % 3 % 2],
        "pay": str(1000 + i * 37 % 900),
        "drugs": ["a|b", "b", "", "c|a"][i * 7 % 4],
    }
    for i, row in enumerate(ROWS)
]


def counted(rows: list[dict[str, str]], a: str, b: str) -> Counter[tuple[str, str]]:
    """Two columns of rows; a set counts at each of its values."""
    sets = {"drugs": lambda text: text.split("|") if text else ["no value"]}
    one, two = (sets.get(c, lambda text: [text]) for c in (a, b))
    return Counter((x, y) for row in rows for x in one(row[a]) for y in two(row[b]))


def cells(side: dict[str, Any]) -> Counter[tuple[str, str]]:
    lines = zip(side["down"], side["counts"], strict=True)
    return Counter({(a, b): n for a, line in lines for b, n in zip(side["across"], line, strict=True) if n})


@pytest.mark.parametrize("kind", ["drugs", "pay"])
def test_columns_that_no_class_tells_are_counted_in_both_files(kind: str, tmp_path: Path) -> None:
    """Insensitive columns, sets of values, and numbers that are published otherwise: as the files have them."""
    with (tmp_path / "more.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(MORE[0]))
        writer.writeheader()
        writer.writerows(MORE)
    own = {"drugs": {"role": "sensitive", "multivalued": "|"},
           "pay": {"role": "sensitive", "publish": {"noise": {"share": 1}}}}  # fmt: skip
    wing = {"role": "insensitive", "near_unique": "allow"}
    policy = {"version": 1, "unit": "none", "columns": {**COLUMNS, "wing": wing, kind: own[kind]}}
    policy |= {"require": [{"model": "k-anonymity", "k": 4}]}
    mw.anonymize(tmp_path / "more.csv", policy, tmp_path / "release", seed=1)
    [part] = parts_beside(tmp_path / "release")
    assert set(shown_columns(part)) == {*COLUMNS, "wing", kind}
    after = published(tmp_path / "release")
    for a, b in (("wing", "diagnosis"), ("wing", "sex")):
        found = crossed_columns(part, a, b, str(tmp_path / "more.csv"))
        assert cells(found["after"]) == counted(after, a, b)
        if b == "diagnosis":
            assert cells(found["before"]) == counted(MORE, a, b)
    found = crossed_columns(part, "wing", kind, str(tmp_path / "more.csv"))
    if kind == "drugs":
        assert cells(found["before"]) == counted(MORE, "wing", "drugs")
        assert cells(found["after"]) == counted(after, "wing", "drugs")
        assert "counted at each of them" in found["note"]
    else:  # noise as large as the numbers: the ranges are those of both sides, and what was true is not shown after
        assert found["before"]["across"] != found["after"]["across"]
        assert np.sum(found["after"]["counts"]) == len(after)
        low, high = (float(t.replace(",", "")) for t in found["after"]["across"][0].split(" to "))
        inside = [row for row in after if low <= float(row["pay"]) < high]
        assert np.sum(found["after"]["counts"], axis=0)[0] == len(inside)


def test_predictive_utility_is_measured(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    request = {"kind": "predict", "release": str(folder), "target": "diagnosis"}
    (tmp_path / "request.json").write_text(json.dumps(request), encoding="utf-8")
    found = KINDS["predict"](WorkerRun(tmp_path))
    assert found["target"] == "diagnosis"
    assert 0 <= found["release"] <= 1
    assert 0.1 < found["commonest"] < 0.4  # five diagnoses, equally common
    told = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    assert next(e["text"] for e in told if e["kind"] == "progress") == "learning from the table"


def test_attacks_tell_how_far_they_are_and_stop(folder: Path, tmp_path: Path) -> None:
    request = {"kind": "attack", "release": str(folder), "adversary": "neighbour"}
    (tmp_path / "request.json").write_text(json.dumps(request), encoding="utf-8")
    run = WorkerRun(tmp_path)
    told: list[Event] = []
    run.progress = Progress(told.append, run.cancelled)
    found = KINDS["attack"](run)["beliefs"]
    shares = [e.share or 0 for e in told if e.kind == "progress"]
    assert len(shares) >= len(found) > 1
    assert shares == sorted(shares)
    assert {b["attack"] for b in found} <= {e.text for e in told}
    (tmp_path / "cancel").touch()
    time.sleep(0.06)  # how rarely the file is looked for
    with pytest.raises(Cancelled):
        KINDS["attack"](run)


def test_a_release_of_the_command_line_is_recorded_and_attacked(bench: Bench) -> None:
    table, releases = bench.tables / "people.csv", [bench.tables / "first", bench.tables / "second"]
    for k, folder in enumerate(releases):
        policy = {
            "version": 1,
            "unit": "none",
            "columns": COLUMNS,
            "require": [{"model": "k-anonymity", "k": 4 + k}],
        }
        mw.anonymize(table, policy, folder)
    stated = {"recipient": "University", "signed_off_by": "A. Keller"}
    entries = [post(bench, "/api/register", 201, path=f.name, **stated) for f in releases]
    for outside in ("../people.csv", "..", "people.csv", "/etc"):
        assert (
            "not the folder of a release"
            in post(bench, "/api/register", 422, path=outside, **stated)["error"]
        )
    page = bench.client.get("/register")
    assert page.status_code == 200
    assert "second" in page.text
    ids = [e["id"] for e in entries]
    job = post(bench, "/api/register/attack", 202, entries=ids)["id"]
    while (found := bench.get(f"/api/runs/{job}"))["state"] == "running":
        pass
    assert found["state"] == "done", found
    mw.anonymize(
        table, {**policy, "require": [{"model": "k-anonymity", "k": 9}]}, releases[0], overwrite=True
    )
    assert "another release" in post(bench, "/api/register/attack", 422, entries=ids)["error"]


def test_a_project_travels_as_one_file(bench: Bench) -> None:
    project = bench.opened()
    pasted = "Aveiro;north;*\nBraga;north;*\nCoimbra;middle;*\nPorto;north;*\n"
    answer = bench.client.put(f"/api/projects/{project}/columns/3/hierarchy", json={"csv": pasted})
    assert answer.status_code == 200, answer.text
    sent = bench.client.get(f"/api/projects/{project}/project.maskwright")
    assert sent.status_code == 200
    names = zipfile.ZipFile(io.BytesIO(sent.content)).namelist()
    assert "data/people.csv" in names
    assert not any("private" in n or "releases" in n for n in names)
    before = bench.get(f"/api/projects/{project}")
    bench.client.delete(f"/api/projects/{project}").raise_for_status()
    answer = bench.client.post(
        "/api/uploads", content=sent.content, headers={"X-File-Name": "people.maskwright"}
    )
    assert answer.status_code == 201, answer.text
    made = answer.json()["id"]
    assert bench.wait(made, bench.last(made))["state"] == "done"
    after = bench.get(f"/api/projects/{made}")
    assert (after["policy"], after["profile"]["rows"]) == (before["policy"], 240)


def changed(content: bytes, **files: bytes) -> bytes:
    """A project file with other members, or with some more."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, files.pop(name, old.read(name)))
        for name, data in files.items():
            new.writestr(name, data)
    return buffer.getvalue()


def test_a_file_that_is_no_project_is_refused_and_leaves_nothing(bench: Bench) -> None:
    project = bench.opened()
    good = bench.client.get(f"/api/projects/{project}/project.maskwright").content
    bad = {
        "no zip": b"hello",
        "cut": good[: len(good) // 2],
        "a path that leads out": changed(good, **{"data/../../evil.csv": b"a\n1\n"}),
        "a folder of its own": changed(good, **{"jobs/x": b"{}"}),
        "a bomb": changed(good, **{"data/more.bin": b"0" * 300_000}),
        "damaged inside": b"".join(
            bytes([b ^ 255]) if i == good.index(b"people.csv") + 60 else bytes([b]) for i, b in enumerate(good)
        ),
        "a name too long": changed(good, **{f"data/{'n' * 300}.txt": b"1"}),
        "the file itself": changed(good, **{"data/x.maskwright": b"1"}),
        "deep": changed(good, **{"project.json": b"[" * 100_000}),
        "half a character": changed(good, **{"project.json": b'{"name": "\\ud800", "reading": {}}'}),
        "no text": changed(good, **{"project.json": b'{"name": "x", "reading": {"delimiter": 5}}'}),
        "no policy": changed(good, **{"policy.yaml": b"version: 1\ncolumns: {age: {role: quasi-identifier, "
                                                     b"hierarchy: {file: /etc/passwd}}}\nrequire: []\n"}),
    }  # fmt: skip
    for what, content in bad.items():
        answer = bench.client.post("/api/uploads", content=content, headers={"X-File-Name": "x.maskwright"})
        assert answer.status_code == 422, (what, answer.text)
    assert len(bench.get("/api/projects")) == 1
    assert not list(bench.workspace.root.parent.rglob("evil.csv"))


def test_forms_say_whom_a_table_was_drawn_from_and_what_separates_values(bench: Bench) -> None:
    project = bench.opened()
    roles = {"name": "identifier", "age": "quasi-identifier", "sex": "quasi-identifier", "town": "quasi-identifier",
             "diagnosis": "sensitive"}  # fmt: skip
    sent = {"columns": roles, "sample": {"size": "100000"}, "multivalued": {"diagnosis": ";"}}
    answer = bench.client.put(f"/api/projects/{project}/roles", json=sent)
    assert answer.status_code == 200, answer.text
    policy = mw.Policy.of(bench.workspace.project(project).policy().to_dict(), "policy")  # type: ignore[union-attr]
    assert policy.population is not None
    assert (policy.population.size, policy.columns["diagnosis"].multivalued) == (100_000, ";")
    page = bench.client.get(f"/p/{project}/columns").text
    assert 'value="100000"' in page
    bench.client.put(
        f"/api/projects/{project}/roles", json={**sent, "sample": {}, "multivalued": {"diagnosis": ""}}
    )
    policy = mw.Policy.of(bench.workspace.project(project).policy().to_dict(), "policy")  # type: ignore[union-attr]
    assert (policy.population, policy.columns["diagnosis"].multivalued) == (None, False)
