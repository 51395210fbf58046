"""The JSON API: the journey without a browser, and every way it can refuse."""

from __future__ import annotations

import fcntl
import io
import json
import os
import signal
import time
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.domain.exact import belief_text
from maskwright.report.risk_and_usefulness import gauge_parts
from maskwright.workbench.roots import Roots
from maskwright.workbench.security import AccessKeys
from maskwright.workbench.serve import create_app
from maskwright.workbench.workspace import Workspace
from tests.workbench.conftest import Bench, people

ROLES = {
    "name": "identifier", "age": "quasi-identifier", "sex": "quasi-identifier", "town": "quasi-identifier",
    "diagnosis": "sensitive",
}  # fmt: skip

LITTLE = {name: {"suppression": "0.02"} for name in ("optimal-lattice", "samarati")}
OUTDATED = "The policy was changed after this comparison"


def ready(bench: Bench, **changes: Any) -> str:
    """A project whose policy can be met."""
    project = bench.opened()
    put(bench, project, "roles", columns={**ROLES, **changes})
    require = [{"model": "k-anonymity", "k": "5"}]
    put(bench, project, "requirements", require=require)
    method = {"name": "optimal-lattice", "suppression": "0.02"}  # whatever was found best for this table
    put(bench, project, "method", method=method, recoding="generalise")
    return project


def put(bench: Bench, project: str, what: str, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = bench.client.put(f"/api/projects/{project}/{what}", json=body)
    assert answer.status_code == status, answer.text
    return dict(answer.json())


def release(bench: Bench) -> tuple[str, str]:
    project = ready(bench)
    job = bench.run(project, kind="release")
    assert job["state"] == "done", job["error"]
    return project, job["id"]


def test_the_journey(bench: Bench, tmp_path: Path) -> None:
    """Open, look, set roles, require, run, download: and the command line makes the same from the policy."""
    project, run = release(bench)
    shown = bench.get(f"/api/projects/{project}")
    assert shown["profile"]["rows"] == 240
    assert shown["releases"] == [run]
    archive = zipfile.ZipFile(
        io.BytesIO(bench.client.get(f"/api/projects/{project}/releases/{run}/public.zip").content)
    )
    assert archive.testzip() is None
    assert {"data.csv", "manifest.json", "data-card.html", "data-dictionary.json"} <= set(archive.namelist())
    assert "Person" not in archive.read("data.csv").decode()

    packed = zipfile.ZipFile(
        io.BytesIO(bench.client.get(f"/api/projects/{project}/policy.zip?run={run}").content)
    )
    packed.extractall(tmp_path / "policy")
    again = mw.anonymize(bench.tables / "people.csv", tmp_path / "policy" / "policy.yaml")
    found = bench.get(f"/api/projects/{project}/runs/{run}/result")["release"]
    assert again.as_dict()["levels"] == found["levels"]
    assert again.as_dict()["verdicts"] == found["verdicts"]
    assert again.as_dict()["metrics"] == found["metrics"]


def test_rows_before_and_after_belong_together(bench: Bench) -> None:
    project, run = release(bench)
    result = bench.get(f"/api/projects/{project}/runs/{run}/result")
    pairs, levels = result["examples"]["pairs"], result["release"]["levels"]
    assert len(pairs) == 12
    assert levels["sex"] == "exact"
    for pair in pairs:
        assert "name" not in pair["before"]
        if pair["after"] is not None:
            assert pair["after"]["diagnosis"] == pair["before"]["diagnosis"]
            assert pair["after"]["sex"] == pair["before"]["sex"]
            low, _, high = pair["after"]["age"].partition("-")
            if high:
                assert int(low) <= int(pair["before"]["age"]) <= int(high)


def test_pages_of_every_step(bench: Bench) -> None:
    project, run = release(bench)
    for page in (
        "columns",
        "columns/1",
        "requirements",
        "method",
        "run",
        "explore",
        "policy",
        f"releases/{run}",
        "table",
    ):
        answer = bench.client.get(f"/p/{project}/{page}")
        assert answer.status_code == 200, page
        assert "people" in answer.text
    report = bench.client.get(f"/p/{project}/releases/{run}/report")
    assert report.status_code == 200
    assert "sandbox" in report.headers["content-security-policy"]
    record = bench.workspace.project(project).release(run) / "private" / "manifest.json"
    [linkage] = [b for b in json.loads(record.read_text())["beliefs"] if b["attack"] == "linkage"]
    gauges = "".join(gauge_parts(linkage["measures"]))
    assert "prosecutor, highest, before" in gauges and "marketer, average, after" in gauges
    assert gauges in report.text and gauges in bench.client.get(f"/p/{project}/releases/{run}").text
    evidence = bench.client.get(f"/p/{project}/releases/{run}/evidence")
    assert evidence.status_code == 200 and "Held against guidance" in evidence.text
    assert evidence.headers["content-security-policy"] == report.headers["content-security-policy"]
    assert bench.client.get(f"/p/{project}/columns/99").status_code == 404
    assert bench.client.get("/p/000000000000/run").status_code == 404
    assert bench.client.get("/nowhere").status_code == 404


def test_the_openapi_description_lists_every_call(bench: Bench) -> None:
    found = bench.get("/api/openapi.json")
    assert "Bearer" in found["info"]["description"]
    assert all(path.startswith("/api/") for path in found["paths"])
    for path, calls in found["paths"].items():
        for call in calls.values():
            assert call["description"], path
    document = (Path(__file__).parents[2] / "docs" / "workbench.md").read_text(encoding="utf-8")
    for path in found["paths"]:
        assert f"`{path}`" in document or f" {path}`" in document, f"{path} is not in docs/workbench.md"


def test_a_role_that_goes_takes_its_requirements_along(bench: Bench) -> None:
    project = bench.opened()
    answer = put(bench, project, "roles", columns={**ROLES, "diagnosis": "insensitive"})
    assert "simple-l-diversity was removed" in answer["notes"][0]
    assert "simple-l-diversity" not in bench.get(f"/api/projects/{project}/policy")["text"]


def test_roles_that_make_no_policy_are_refused(bench: Bench) -> None:
    project = bench.opened()
    before = bench.get(f"/api/projects/{project}/policy")
    answer = put(bench, project, "roles", 422, columns=dict.fromkeys(ROLES, "identifier"))
    assert "no column has the role quasi-identifier" in answer["error"]
    assert "no column" in put(bench, project, "roles", 422, columns={"nowhere": "sensitive"})["error"]
    assert "not allowed" in put(bench, project, "roles", 422, columns={**ROLES, "age": "secret"})["error"]
    assert bench.get(f"/api/projects/{project}/policy") == before


def test_missing_values_and_units(bench: Bench) -> None:
    project = bench.opened()
    put(bench, project, "roles", columns=ROLES, missing=["?", "none"], rows="drop", unit="name")
    policy = mw.Policy.load(bench.workspace.project(project).folder / "policy.yaml")
    assert policy.missing.tokens == ("?", "none")
    assert policy.missing.rows == "drop"
    assert policy.unit == "name"
    put(bench, project, "roles", 422, columns=ROLES, missing=[], unit="age")
    put(bench, project, "roles", columns=ROLES, missing=[], unit={"column": "name", "rows": 2})
    assert (
        'id="unit-rows" type="number" min="1" step="1" value="2"'
        in bench.client.get(f"/p/{project}/columns").text
    )
    put(bench, project, "roles", columns=ROLES)  # settings stay that were not asked for
    policy = mw.Policy.load(bench.workspace.project(project).folder / "policy.yaml")
    assert policy.people is not None and (policy.people.column, policy.people.rows) == ("name", 2)
    wrong = put(bench, project, "roles", 422, columns=ROLES, missing=[], unit={"column": "name", "rows": 0})
    assert "greater than or equal to 1" in wrong["error"]
    put(bench, project, "roles", columns={**ROLES, "name": "drop"})
    assert mw.Policy.load(bench.workspace.project(project).folder / "policy.yaml").people is None


def test_two_tabs_do_not_overwrite_each_other(bench: Bench) -> None:
    project = bench.opened()
    seen = bench.get(f"/api/projects/{project}/policy")["revision"]
    url, body = f"/api/projects/{project}/requirements", {"require": [{"model": "k-anonymity", "k": "7"}]}
    first = bench.client.put(url, json=body, headers={"If-Match": seen})
    assert first.status_code == 200
    second = bench.client.put(url, json=body, headers={"If-Match": seen})
    assert second.status_code == 409
    assert "another tab" in second.json()["error"]
    assert bench.client.put(url, json=body, headers={"If-Match": first.json()["revision"]}).status_code == 200


WRONG: list[tuple[list[Any], dict[str, Any] | None, str]] = [
    ([{"model": "k-anonymity", "k": "0"}], {"index": 0, "field": "k"}, "least allowed is 1"),
    ([{"model": "k-anonymity", "k": "five"}], {"index": 0, "field": "k"}, "five"),
    ([{"model": "k-anonymity", "k": ""}], {"index": 0, "field": "k"}, "required"),
    ([{"model": "k-anonymity", "k": "3"}, {"model": "t-closeness", "t": "x"}], {"index": 1, "field": "t"}, "x"),
    ([{"model": "k-anonymity", "k": "3", "on": "[["}], {"index": 0, "field": "on"}, "write a list"),
    ([{"model": "l-anonymity"}], {"index": 0, "field": "model"}, "no model"),
    ([{"model": "simple-l-diversity", "l": "2", "attribute": "age"}], None, "not a sensitive column"),
    ([], None, "ask for something"),
]  # fmt: skip


def test_errors_say_where_they_belong(bench: Bench) -> None:
    project = bench.opened()
    for require, at, word in WRONG:
        answer = put(bench, project, "requirements", 422, require=require)
        assert word in answer["error"]
        if at is not None:
            assert answer["at"] == {"section": "require", **at}


def test_method_and_recoding(bench: Bench) -> None:
    project = bench.opened()
    put(bench, project, "method", method={"name": "mondrian", "cut": "balanced"}, recoding="generalise")
    answer = put(bench, project, "method", 422, method={"name": "optimal-lattice", "suppression": "3"})
    assert answer["at"] == {"section": "method", "index": None, "field": "suppression"}
    assert "no method" in put(bench, project, "method", 422, method={"name": "magic"})["error"]
    assert put(bench, project, "method", 422, method={"name": "mondrian"}, recoding="burn")["error"]


COARSER: list[tuple[dict[str, Any], list[int]]] = [
    ({"spec": "suppress"}, [4, 1]),
    ({"tree": "north\n  Braga\n  Porto\nAveiro\nCoimbra"}, [4, 3, 1]),
    ({"csv": "Aveiro;centre\nCoimbra;centre\nBraga;north\nPorto;north\n"}, [4, 2, 1]),
    ({"groups": "{north: [Braga, Porto], centre: [Aveiro, Coimbra]}"}, [4, 2, 1]),
    ({"spec": {"mask": "right", "by": ["1", "6"]}}, [4, 2, 1]),
]


def test_hierarchies_are_previewed_and_saved(bench: Bench) -> None:
    project = ready(bench)
    for body, labels in COARSER:
        answer = bench.client.post(f"/api/projects/{project}/columns/3/preview", json=body).json()
        assert answer["ok"], answer
        assert [level["labels"] for level in answer["levels"]] == labels
        assert sum(block["rows"] for block in answer["levels"][0]["blocks"]) == 240
        put(bench, project, "columns/3/hierarchy", **body)
        assert bench.client.get(f"/p/{project}/columns/3").status_code == 200
        if "csv" in body:
            assert bench.run(project, kind="release")["state"] == "done"


NONE: list[tuple[dict[str, Any], str, list[str]]] = [
    ({"tree": "north\n  Braga\n  Porto\nAveiro"}, "does not list", ["Coimbra"]),
    ({"tree": "north\n    Braga\n  Porto"}, "line 3", ["Porto"]),
    ({"tree": " \n"}, "empty", []),
    ({"csv": ""}, "paste", []),
    ({"csv": "Aveiro;centre\nBraga;north\nCoimbra\nPorto;north\n"}, "pasted table: line 3", ["Coimbra"]),
    ({"groups": "[[Aveiro, Braga], [Braga, Coimbra, Porto]]"}, "Braga", ["Braga"]),
    ({"groups": "{{"}, "YAML", []),
    ({"spec": {"intervals": ["10"]}}, "not a number", ["Aveiro"]),
    ({"spec": {"dates": []}}, "dates", []),
    ({"spec": None}, "say how", []),
]


def test_errors_of_hierarchies_name_their_values(bench: Bench) -> None:
    project = ready(bench)
    before = bench.get(f"/api/projects/{project}/policy")
    for body, word, values in NONE:
        answer = bench.client.post(f"/api/projects/{project}/columns/3/preview", json=body).json()
        assert answer["ok"] is False
        assert word in answer["error"], answer
        assert answer["values"] == values
        put(bench, project, "columns/3/hierarchy", 422, **body)
        assert bench.get(f"/api/projects/{project}/policy") == before


def test_intervals_that_do_not_nest(bench: Bench) -> None:
    project = ready(bench)
    answer = bench.client.post(
        f"/api/projects/{project}/columns/1/preview", json={"spec": {"intervals": ["4", "10"]}}
    ).json()
    assert "multiple" in answer["error"]


def test_an_impossible_policy_is_a_failed_run(bench: Bench) -> None:
    project = ready(bench)
    put(bench, project, "requirements", require=[{"model": "k-anonymity", "k": "241"}])
    job = bench.run(project, kind="release")
    assert job["state"] == "failed"
    assert "k-anonymity" in job["error"] or "240" in job["error"]
    assert bench.get(f"/api/projects/{project}")["releases"] == []
    assert job["error"] in bench.client.get(f"/p/{project}/run").text.replace("&#39;", "'").replace(
        "&gt;", ">"
    )


def test_choices_are_measured_and_one_can_be_published(bench: Bench) -> None:
    project = ready(bench)
    job = bench.run(project, kind="space")
    assert job["state"] == "done", job["error"]
    found = bench.get(f"/api/projects/{project}/runs/{job['id']}/result")
    nodes = mw.minimal_nodes(
        bench.tables / "people.csv", bench.workspace.project(project).folder / "policy.yaml"
    )
    assert found["number"] == len(nodes) == len(found["choices"])
    choice = found["choices"][-1]
    put(bench, project, "levels", levels=choice["levels"])
    made = bench.run(project, kind="release")
    result = bench.get(f"/api/projects/{project}/runs/{made['id']}/result")["release"]
    assert result["history"]["chosen_by_looking"]  # and the release says so
    assert result["levels"] == choice["levels"]
    assert result["rows"]["suppressed"] == choice["suppressed"]
    assert result["metrics"] == choice["metrics"]
    shared = {b["attack"]: b["worst"]["after"] for b in result["beliefs"]}
    for belief in choice["beliefs"]:
        assert belief["worst"]["after"] == shared[belief["attack"]]
    put(bench, project, "levels", levels=None)
    assert "levels" not in bench.get(f"/api/projects/{project}/policy")["text"]
    assert "no level is given" in put(bench, project, "levels", 422, levels={"age": "any"})["error"]


def test_methods_are_compared(bench: Bench) -> None:
    project = ready(bench)
    names = ["optimal-lattice", "mondrian", "anatomy"]
    job = bench.run(project, kind="compare", methods=[{"name": n} for n in names])
    assert job["state"] == "done", job["error"]
    points = bench.get(f"/api/projects/{project}/runs/{job['id']}/result")["points"]
    assert [p["name"] for p in points] == names
    assert points[0]["status"] == points[1]["status"] == "holds"
    assert points[0]["metrics"]["information-loss"] != points[1]["metrics"]["information-loss"]
    assert all(p["status"] == "holds" or p["reason"] for p in points)
    put(bench, project, "method", method=points[1]["method"], recoding="generalise")
    page = bench.client.get(f"/p/{project}/explore").text
    for point in points[:2]:  # the same figure in the table as in the chart
        assert f": {belief_text(Fraction(point['worst_belief']))}</td>" in page
    assert bench.get(f"/api/projects/{project}")["releases"] == []


def test_pinned_levels_hold_for_every_method_that_is_compared(bench: Bench) -> None:
    """A method publishes at exactly the levels that the policy fixes, or says that it cannot."""
    project = ready(bench)
    names = ["optimal-lattice", "samarati", "local-recoding", "mondrian"]
    free = bench.run(project, kind="compare", methods=[{"name": n, **LITTLE.get(n, {})} for n in names])
    pins = {"age": "any", "sex": "exact", "town": "exact"}
    put(bench, project, "levels", levels=pins)
    assert OUTDATED in bench.client.get(f"/p/{project}/explore").text  # what is shown has other levels
    fixed = bench.run(project, kind="compare", methods=[{"name": n, **LITTLE.get(n, {})} for n in names])
    page = bench.client.get(f"/p/{project}/explore").text
    assert OUTDATED not in page
    assert all(f"{name}: {level}</span>" in page for name, level in pins.items())
    before, after = (
        bench.get(f"/api/projects/{project}/runs/{job['id']}/result")["points"] for job in (free, fixed)
    )
    put(
        bench,
        project,
        "method",
        method={"name": "optimal-lattice", "suppression": "0.02"},
        recoding="generalise",
    )
    assert OUTDATED not in bench.client.get(f"/p/{project}/explore").text  # the method is what is compared
    made = bench.run(project, kind="release")
    release = bench.get(f"/api/projects/{project}/runs/{made['id']}/result")["release"]
    assert release["levels"] == pins
    held = [point for point in after if point["status"] == "holds"]
    assert {"optimal-lattice", "samarati"} <= {point["name"] for point in held}
    for point in held:
        assert point["metrics"]["information-loss"] == release["metrics"]["information-loss"], point["name"]
    for point in after:
        if point["status"] != "holds":
            assert "allowed" in point["reason"], point
    assert any(a["metrics"] != b["metrics"] for a, b in zip(before, after, strict=True))


def test_a_release_is_attacked_again(bench: Bench) -> None:
    project, run = release(bench)
    job = bench.run(project, kind="attack", release=run, adversary="insider", facts=2)
    assert job["state"] == "done", job["error"]
    beliefs = bench.get(f"/api/projects/{project}/runs/{job['id']}/result")["beliefs"]
    expected = mw.attack(bench.workspace.project(project).release(run), adversary="insider", facts=2)
    assert isinstance(expected, list)
    assert [b["attack"] for b in beliefs] == [b.attack for b in expected]
    assert "insider" in bench.client.get(f"/p/{project}/releases/{run}").text
    for body in ({"release": "0" * 12}, {"release": run, "adversary": "god"}, {"release": run, "facts": -1}):
        assert bench.client.post(
            f"/api/projects/{project}/runs", json={"kind": "attack", **body}
        ).status_code in (404, 422)
    assert bench.client.post(f"/api/projects/{project}/runs", json={"kind": "magic"}).status_code == 422


@pytest.mark.parametrize(("kind", "page"), [("attack", ""), ("predict", "/beside")])
def test_what_goes_on_with_a_release_is_told_and_can_be_cancelled(bench: Bench, kind: str, page: str) -> None:
    """While an attack or a prediction goes on, its page shows how far it is; a refused one says why."""
    project, run = release(bench)
    folder = bench.workspace.project(project).folder / "jobs" / "0123456789ab"
    folder.mkdir()
    asked = {"kind": kind, "of": run, "began": time.time() + 9, "started": "2026-01-01T00:00:00Z"}
    (folder / "request.json").write_text(json.dumps(asked), encoding="utf-8")
    address = f"/p/{project}/releases/{run}{page}"
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        shown = bench.client.get(address).text
        assert f'data-job="/api/projects/{project}/runs/0123456789ab" data-state="running"' in shown
        assert "data-cancel>Cancel" in shown
        assert (
            f'href="/p/{project}/releases/{run}{page}">Watch'
            in bench.client.get(f"/p/{project}/columns").text
        )
        assert bench.client.post(f"/api/projects/{project}/runs/0123456789ab/cancel").status_code == 202
        assert (folder / "cancel").exists()
    (folder / "outcome.json").write_text(
        json.dumps({"ok": False, "error": "it takes one row each"}), encoding="utf-8"
    )
    shown = bench.client.get(address).text
    assert "it takes one row each" in shown
    assert "data-cancel>Cancel" not in shown


def test_promises_are_shown_before_and_after_the_run(bench: Bench) -> None:
    project, run = release(bench)
    page = bench.client.get(f"/p/{project}/releases/{run}").text
    assert "What is promised about belief" in page
    assert "earlier look at this input. Not attacked" in page
    assert "Lemma (" in page
    same = bench.client.get(f"/p/{project}/run").text
    assert "What is promised before it is run" in same
    assert "other settings were tried" not in same, "the same policy makes the same release"
    put(bench, project, "requirements", require=[{"model": "k-anonymity", "k": "7"}])
    other = bench.client.get(f"/p/{project}/run").text
    assert "measured: no proof covers" in other
    assert "other settings were tried on this input" in other


def test_the_register(bench: Bench) -> None:
    project, run = release(bench)
    url = f"/api/projects/{project}/releases/{run}/register"
    for wrong in ({"recipient": "", "signed_off_by": "A"}, {"recipient": "B"}):
        assert bench.client.post(url, json=wrong).status_code == 422
    body = {"recipient": "University", "signed_off_by": "A. Keller", "purpose": "a <b>study</b>"}
    assert bench.client.post(url, json=body).status_code == 201
    [entry] = bench.get("/api/register")
    assert entry["release"] == run
    assert entry["given_out"] == time.strftime("%Y-%m-%d", time.gmtime())
    assert len(entry["policy"]) == len(entry["manifest"]) == 64
    page = bench.client.get("/register").text
    assert "A. Keller" in page
    assert "&lt;b&gt;study" in page
    refused = bench.client.delete(f"/api/projects/{project}")
    assert refused.status_code == 409
    assert "given out" in refused.json()["error"]
    once = bench.client.post("/api/register/attack", json={"entries": [entry["id"], entry["id"]]})
    assert "two different releases" in once.json()["error"]
    assert bench.client.post("/api/register/attack", json={"entries": ["x", "y"]}).status_code == 404


def test_releases_of_the_register_are_attacked_together(bench: Bench) -> None:
    """Two releases of the same people under different policies: together they tell more than each."""
    project, first = release(bench)
    put(bench, project, "requirements", require=[{"model": "k-anonymity", "k": "3"}])
    put(bench, project, "columns/3/hierarchy", tree="north\n  Braga\n  Porto\nsouth\n  Aveiro\n  Coimbra")
    second = bench.run(project, kind="release")["id"]
    entries = []
    for run, recipient in ((first, "University"), (second, "Ministry")):
        body = {"recipient": recipient, "signed_off_by": "A. Keller"}
        url = f"/api/projects/{project}/releases/{run}/register"
        entries.append(bench.client.post(url, json=body).json()["id"])
    job = bench.client.post("/api/register/attack", json={"entries": entries}).json()["id"]
    until = time.monotonic() + 600
    while (state := bench.get(f"/api/runs/{job}"))["state"] == "running":
        assert time.monotonic() < until
        time.sleep(0.05)
    assert state["state"] == "done", state["error"]
    folders = [bench.workspace.project(project).release(r) for r in (first, second)]
    expected = mw.attack(folders, "intersection")
    assert not isinstance(expected, list)
    assert [b["worst"]["after"] for b in state["result"]["beliefs"]] == [expected.as_dict()["worst"]["after"]]
    page = bench.client.get("/register").text
    assert "Ministry" in page
    assert "intersection" in page
    assert bench.client.post(f"/api/runs/{job}/cancel").status_code == 202


def test_a_project_whose_table_another_one_reads_is_kept(bench: Bench) -> None:
    """The workspace may lie below a folder whose tables can be opened by path."""
    first = bench.client.post(
        "/api/uploads", content=people(30).encode(), headers={"X-File-Name": "a.csv"}
    ).json()
    bench.wait(first["id"], first["running"])
    table = Path(first["source"]["path"])
    other = bench.workspace.create("the same table", table)
    refused = bench.client.delete(f"/api/projects/{first['id']}")
    assert refused.status_code == 409
    assert "'the same table' reads a table of this one" in refused.json()["error"]
    assert table.exists()
    for project in (other.id, first["id"]):
        assert bench.client.delete(f"/api/projects/{project}").status_code == 200
    assert not table.exists()


def test_projects_can_be_deleted(bench: Bench) -> None:
    project, _ = release(bench)
    assert bench.client.delete(f"/api/projects/{project}").status_code == 200
    assert bench.client.get(f"/api/projects/{project}").status_code == 404
    assert list((bench.workspace.root / "projects").iterdir()) == []
    assert (bench.tables / "people.csv").exists()  # it was opened by path, and is not ours


# -- runs that end otherwise -----------------------------------------------------------------------------------


@pytest.fixture
def slow(bench: Bench) -> str:
    """A project whose next run takes some seconds."""
    lines = people().splitlines()
    rows = "\n".join(lines[1:] * 2500)
    (bench.tables / "large.csv").write_text(f"{lines[0]}\n{rows}\n", encoding="utf-8")
    project = bench.opened("large.csv")
    put(bench, project, "roles", columns=ROLES, missing=[], unit="none")
    put(bench, project, "requirements", require=[{"model": "k-anonymity", "k": "5"}])
    return project


def start(bench: Bench, project: str) -> str:
    answer = bench.client.post(f"/api/projects/{project}/runs", json={"kind": "release"})
    assert answer.status_code == 202
    return str(answer.json()["id"])


def test_a_run_is_cancelled(bench: Bench, slow: str) -> None:
    run = start(bench, slow)
    second = bench.client.post(f"/api/projects/{slow}/runs", json={"kind": "release"})
    assert second.status_code == 409
    assert bench.client.delete(f"/api/projects/{slow}").status_code == 409
    assert bench.client.post(f"/api/projects/{slow}/runs/{run}/cancel").status_code == 202
    job = bench.wait(slow, run)
    assert job["state"] == "cancelled"
    assert "nothing was published" in job["error"]
    folder = bench.workspace.project(slow).folder / "releases"
    assert list(folder.iterdir()) == []
    assert (
        bench.client.post(f"/api/projects/{slow}/runs/{run}/cancel").status_code == 202
    )  # and again: harmless
    assert "Cancelled" in bench.client.get(f"/p/{slow}/run").text


@pytest.mark.usefixtures("started_alone")
def test_a_run_that_was_killed_is_told_and_cleaned_up(bench: Bench, slow: str) -> None:
    run = start(bench, slow)
    folder = bench.workspace.project(slow).folder / "releases"
    until = time.monotonic() + 600
    while not any(p.name.endswith(".new") for p in folder.iterdir()):
        assert time.monotonic() < until
        time.sleep(0.02)
    os.kill(pid_of(run), signal.SIGKILL)
    job = bench.wait(slow, run)
    assert job["state"] == "interrupted"
    assert list(folder.iterdir()) == []  # its unfinished files held raw data
    assert "was killed" in bench.client.get(f"/p/{slow}/run").text
    again = bench.run(slow, kind="release")
    assert again["state"] == "done", again


def pid_of(run: str) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"maskwright.workbench.worker" in words and words[-2].endswith(run.encode()):
                return int(entry.name)
    raise AssertionError("there is no such process")


def test_a_run_outlives_the_server(bench: Bench, slow: str) -> None:
    """Another server on the same workspace sees the run go on, and then its release."""
    run = start(bench, slow)
    bench.workspace.close()
    again = Workspace(bench.workspace.root)
    try:
        job = again.project(slow).jobs.get(run)
        assert job is not None
        assert job.state == "running"
        create_app(again, AccessKeys(1, frozenset()), Roots.of([bench.tables]))
        until = time.monotonic() + 600
        while job.state == "running":
            assert time.monotonic() < until
            time.sleep(0.05)
        assert job.state == "done"
        assert again.project(slow).releases() == [run]
    finally:
        again.close()


# -- tables that are not what they should be -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"a,b\n1\n2,3,4\n", "line"),
        (b"a,b\n", "no rows"),
        ("näme,alter\nJosé,3\n".encode("latin-1"), "encod"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_read(bench: Bench, content: bytes, word: str) -> None:
    answer = bench.client.post("/api/uploads", content=content, headers={"X-File-Name": "messy.csv"})
    if not content:
        assert answer.status_code == 422
        assert word in answer.json()["error"]
        return
    project = answer.json()["id"]
    job = bench.wait(project, bench.last(project))
    assert job["state"] == "failed"
    assert word in job["error"].lower()
    assert bench.client.get(f"/p/{project}/columns").url.path.endswith("/columns")
    assert bench.client.get(f"/p/{project}/table").status_code == 200
    assert bench.client.post(f"/api/projects/{project}/runs", json={"kind": "release"}).status_code == 409
    answer = bench.client.put(f"/api/projects/{project}/roles", json={"columns": {}})
    assert answer.status_code == 409


def test_names_that_occur_twice_are_repaired_and_the_policy_says_so(bench: Bench) -> None:
    answer = bench.client.post(
        "/api/uploads", content=b"age,age\n1,2\n", headers={"X-File-Name": "messy.csv"}
    )
    project = answer.json()["id"]
    assert bench.wait(project, bench.last(project))["state"] == "done"
    assert "names: repair" in bench.get(f"/api/projects/{project}/policy")["text"]


def test_a_table_is_read_differently(bench: Bench) -> None:
    content = "name;alter;ort\n" + "".join(f"Jos\u00e9 {i};{20 + i % 9};K\u00f6ln\n" for i in range(60))
    answer = bench.client.post(
        "/api/uploads", content=content.encode("latin-1"), headers={"X-File-Name": "m.csv"}
    )
    project = answer.json()["id"]
    assert bench.wait(project, bench.last(project))["state"] == "failed"
    body = {"encoding": "latin-1", "delimiter": ";"}
    job = bench.client.post(f"/api/projects/{project}/profile", json=body).json()
    assert bench.wait(project, job["id"])["state"] == "done"
    shown = bench.get(f"/api/projects/{project}")
    assert [c["name"] for c in shown["profile"]["columns"]] == ["name", "alter", "ort"]
    assert "latin-1" in shown["policy"]
    assert bench.wait(project, bench.run(project, kind="release")["id"])["state"] == "done"


def test_a_table_of_which_nothing_can_be_guessed(bench: Bench) -> None:
    """No column looks like something an attacker could know; the roles can still be set by hand."""
    (bench.tables / "keys.csv").write_text(
        "email\n" + "".join(f"p{i}@example.org\n" for i in range(30)), encoding="utf-8"
    )
    project = bench.opened("keys.csv")
    shown = bench.get(f"/api/projects/{project}")
    assert shown["policy"] is None
    assert "no column looks like" in shown["profile"]["problem"]
    assert "no column looks like" in bench.client.get(f"/p/{project}/columns").text
    for page in ("requirements", "method", "run", "explore", "policy"):
        assert bench.client.get(f"/p/{project}/{page}").status_code == 200
    put(bench, project, "roles", columns={"email": "quasi-identifier"})
    assert bench.get(f"/api/projects/{project}")["policy"]


def test_presets_look_again(bench: Bench) -> None:
    project = bench.opened()
    job = bench.client.post(f"/api/projects/{project}/profile", json={"preset": "research"}).json()
    assert bench.wait(project, job["id"])["state"] == "done"
    assert "preset: research" in bench.get(f"/api/projects/{project}/policy")["text"]
    job = bench.client.post(f"/api/projects/{project}/profile", json={"preset": "magic"}).json()
    state = bench.wait(project, job["id"])
    assert state["state"] == "failed"
    assert "magic" in state["error"]


def test_the_example(bench: Bench) -> None:
    project = bench.client.post("/api/projects", json={"demo": True}).json()["id"]
    assert bench.wait(project, bench.last(project))["state"] == "done"
    assert bench.run(project, kind="release")["state"] == "done"


def test_logs_hold_no_data(bench: Bench) -> None:
    project, run = release(bench)
    folder = bench.workspace.project(project).folder / "jobs" / run
    assert (folder / "log").read_bytes() == b""
    events = (folder / "events.jsonl").read_text(encoding="utf-8")
    assert "Person" not in events
    assert next(json.loads(line)["text"] for line in events.splitlines()) == "reading"


def test_a_table_with_empty_and_repeated_names_is_opened(bench: Bench) -> None:
    rows = "\n".join(f"{20 + i % 40},{'mf'[i % 2]},{i % 3}" for i in range(120))
    (bench.tables / "names.csv").write_text(f"age,,age\n{rows}\n", encoding="utf-8")
    project = bench.opened("names.csv")
    text = (bench.workspace.project(project).folder / "policy.yaml").read_text(encoding="utf-8")
    assert "input: {names: repair}" in text
    assert set(mw.Policy.load(bench.workspace.project(project).folder / "policy.yaml").columns) == {
        "age",
        "column2",
        "age_2",
    }
