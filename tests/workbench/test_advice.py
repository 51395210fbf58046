"""Advice in the workbench, messy columns, what must stay, and alternatives that one click takes."""

from __future__ import annotations

from maskwright.policy.policy import Policy
from tests.prepare.messy import messy_table
from tests.workbench.conftest import Bench


def opened(bench: Bench) -> str:
    """A project with a messy table."""
    messy_table(300).write(bench.tables / "messy.csv")
    return bench.opened("messy.csv")


def test_three_answers_lead_to_a_policy_with_its_reasons(bench: Bench) -> None:
    project = opened(bench)
    assert bench.client.get(f"/p/{project}").headers["location"].endswith("/advice")
    answers = {"recipient": "researchers", "knows": "people", "needs": "detail"}
    started = bench.client.post(f"/api/projects/{project}/profile", json=answers)
    assert bench.wait(project, started.json()["id"])["state"] == "done"
    page = bench.client.get(f"/p/{project}/advice").text
    assert "Researchers who signed an agreement" in page
    assert "which keeps" in page
    assert "Not for this table, as it stands" in page
    assert "not for this table as it stands" in bench.client.get(f"/p/{project}/requirements").text
    assert "Not for this table as it stands" in bench.client.get(f"/p/{project}/method").text
    assert bench.get(f"/api/projects/{project}/policy")["text"].count("preset: research") == 1
    wrong = bench.client.post(f"/api/projects/{project}/profile", json={"needs": "everything"})
    assert wrong.status_code == 422
    assert "needs: there is no answer" in wrong.json()["error"]


def test_messy_columns_are_told_and_switched_and_what_must_stay_is_kept(bench: Bench) -> None:
    project = opened(bench)
    page = bench.client.get(f"/p/{project}/columns").text
    assert 'data-prepare="sex" checked' in page
    assert "another spelling" in page or "rows" in page
    shown = bench.get(f"/api/projects/{project}")
    roles = {c["name"]: c["role"] for c in shown["profile"]["columns"]}
    body = {"columns": roles, "keep": {"sex": "exact", "disease": "exact"}, "prepare": {"sex": False}}
    assert bench.client.put(f"/api/projects/{project}/roles", json=body).status_code == 200
    policy = _policy(bench, project)
    assert policy.keep == {"sex": "exact"}  # disease is sensitive: it is published as it is
    assert "sex" not in policy.prepare
    assert bench.client.put(
        f"/api/projects/{project}/roles", json=body | {"prepare": {"sex": True}, "keep": {}}
    ).is_success
    policy = _policy(bench, project)
    assert "sex" in policy.prepare
    assert policy.keep == {}


def test_a_refusal_comes_with_alternatives_and_one_is_taken(bench: Bench) -> None:
    project = opened(bench)
    text = bench.get(f"/api/projects/{project}/policy")["text"]
    policy = Policy.of({**_policy(bench, project).to_dict(), **STRICT}, "policy")
    assert bench.client.put(f"/api/projects/{project}/policy", json={"text": policy.to_yaml()}).is_success, (
        text
    )
    refused = bench.run(project)
    assert refused["state"] == "failed"
    page = bench.client.get(f"/p/{project}/run").text
    assert "Refused" in page
    assert "Not possible" not in page
    assert "What else would work" in page
    assert "Take this one" in page
    chosen = bench.client.post(f"/api/projects/{project}/runs/{refused['id']}/choose", json={"number": 1})
    assert chosen.status_code == 202, chosen.text
    assert bench.wait(project, chosen.json()["id"])["state"] == "done"
    missing = bench.client.post(f"/api/projects/{project}/runs/{refused['id']}/choose", json={"number": 99})
    assert missing.status_code == 404
    again = bench.client.post(f"/api/projects/{project}/runs/{refused['id']}/choose", json={"number": 1})
    assert again.status_code == 202, "the policy is one of those that were tried for that run"
    bench.wait(project, again.json()["id"])
    decided = {
        **policy.to_dict(),
        "columns": {**policy.to_dict()["columns"], "zip": "identifier"},
        "keep": {},
    }
    body = {"text": Policy.of(decided, "policy").to_yaml()}
    assert bench.client.put(f"/api/projects/{project}/policy", json=body).is_success
    stale = bench.client.post(f"/api/projects/{project}/runs/{refused['id']}/choose", json={"number": 1})
    assert stale.status_code == 409, "an alternative to what was asked before would publish the column again"
    assert bench.get(f"/api/projects/{project}/policy")["text"] == body["text"]


STRICT = {
    "require": [
        {"model": "k-anonymity", "k": 5},
        {"model": "simple-l-diversity", "l": 2, "attribute": "disease", "use": "gate"},
    ],
    "method": {"name": "optimal-lattice", "suppression": "0"},
    "keep": {"zip": "exact"},
}


def _policy(bench: Bench, project: str) -> Policy:
    return bench.workspace.project(project).policy()  # type: ignore[return-value]
