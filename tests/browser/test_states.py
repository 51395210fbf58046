"""What a page shows when something else happens: another tab, a cancelled run, a server that stops, a refusal."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pandas as pd
import pytest
import yaml

import maskwright as mw
from maskwright.report.report import report_page
from tests.browser.conftest import Server, User
from tests.workbench.conftest import people

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def large(tables: Path) -> None:
    """A table whose release takes some seconds."""
    lines = people().splitlines()
    rows = "\n".join(f"{i} {line}" for i in range(2000) for line in lines[1:])  # names do not repeat
    (tables / "large.csv").write_text(f"{lines[0]}\n{rows}\n", encoding="utf-8")


def opened(user: User, name: str) -> None:
    page = user.page
    page.reload()
    page.get_by_role("button", name=name).click()
    page.wait_for_url("**/advice")
    user.step("Requirements")
    page.get_by_label("k *").fill("5")
    user.remove("simple-l-diversity")
    user.save()
    user.step("Run")


def test_a_run_is_cancelled_and_made_again(user: User, large: None) -> None:
    page = user.page
    opened(user, "large.csv")
    page.get_by_role("button", name="Make the release").click()
    page.get_by_role("heading", name="Running").wait_for()
    assert page.get_by_role("button", name="Make the release").is_disabled()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("heading", name="Cancelled").wait_for()
    page.get_by_text("nothing was published").first.wait_for()
    page.get_by_role("button", name="Make the release").click()
    page.wait_for_url("**/releases/*")


def test_a_run_survives_its_tab_and_its_server(tab: Callable[[], User], server: Server, large: None) -> None:
    """The tab is closed, the server stopped and started: the page shows the run that went on meanwhile."""
    user = tab()
    opened(user, "large.csv")
    user.page.get_by_role("button", name="Make the release").click()
    user.page.get_by_role("heading", name="Running").wait_for()
    address, project = user.page.url, user.project
    other = tab()
    other.page.goto(address)
    other.page.get_by_role("heading", name="Running").wait_for()
    user.page.close()
    server.stop()
    other.page.locator("[data-error]").filter(has_text="does not answer").wait_for()
    before, path = server.home, address.removeprefix(server.home)
    server.start()
    assert server.home != before  # another name and another token: sessions end with the server
    other.page.reload()
    other.page.get_by_text("does not answer to that host name").wait_for()
    other.page.goto(server.url)
    other.page.wait_for_url(f"{server.home}/")
    other.go(path)
    ended = other.page.get_by_role("link", name="Look at the release")
    if ended.count():  # before this page was there, which then has nothing to wait for
        ended.click()
    other.page.wait_for_url("**/releases/*")
    other.page.get_by_text("Every requirement holds").wait_for()
    assert len(server.api(f"/api/projects/{project}")["releases"]) == 1


def test_a_run_that_was_interrupted(user: User, server: Server, tables: Path) -> None:
    """The machine was shut down in the middle: the page says so after the next start."""
    (tables / "people.csv").write_text(people(), encoding="utf-8")
    opened(user, "people.csv")
    project = user.project
    server.stop()
    job = server.workspace / "projects" / project / "jobs" / "0123456789ab"
    job.mkdir()
    (job / "request.json").write_text(
        '{"kind": "release", "began": 1, "started": "2026-01-01T00:00:00Z"}', encoding="utf-8"
    )
    (job / "events.jsonl").write_text(
        '{"kind": "step", "text": "reading", "share": null, "at": 1}\n', encoding="utf-8"
    )
    server.start()
    user.page.goto(server.url)
    user.page.wait_for_url(f"{server.home}/")
    user.go(f"/p/{project}/run")
    user.page.get_by_role("heading", name="Interrupted").wait_for()
    user.page.get_by_text("Nothing was published").wait_for()


def test_two_tabs(tab: Callable[[], User], tables: Path) -> None:
    """What one tab saved is not overwritten by the other unknowingly; both see a run that either starts."""
    (tables / "people.csv").write_text(people(), encoding="utf-8")
    first = tab()
    opened(first, "people.csv")
    second = tab()
    for user in (first, second):
        user.go(f"/p/{first.project}/requirements")
    first.page.get_by_label("k *").fill("6")
    first.save()
    second.page.get_by_label("k *").fill("7")
    second.page.get_by_role("button", name="Save", exact=True).click()
    second.page.locator("#problem").filter(has_text="another tab").wait_for()
    second.page.on("dialog", lambda dialog: dialog.accept())
    second.page.reload()
    assert second.page.get_by_label("k *").input_value() == "6"
    second.step("Run")
    first.step("Run")
    first.page.get_by_role("button", name="Make the release").click()
    first.page.wait_for_url("**/releases/*")
    second.page.reload()
    second.page.get_by_role("link", name="Look at the release").wait_for()


def test_unsaved_changes_are_not_lost_silently(user: User, tables: Path) -> None:
    (tables / "people.csv").write_text(people(), encoding="utf-8")
    opened(user, "people.csv")
    user.step("Requirements")
    user.page.get_by_label("k *").fill("9")
    user.page.get_by_text("Not saved yet").wait_for()
    user.page.on("dialog", lambda dialog: dialog.dismiss())
    with user.page.expect_event("dialog") as asked:
        user.page.get_by_role("link", name="Method").click()
    assert asked.value.type == "beforeunload"
    assert user.page.get_by_text("Not saved yet").is_visible()
    assert user.page.url.endswith("/requirements")


def test_refusals_are_sentences(user: User, tables: Path, tmp_path: Path, server: Server) -> None:
    page = user.page
    (tables.parent / "secret.csv").write_text("a\n1\n", encoding="utf-8")
    page.get_by_label("Or its path").fill("../secret.csv")
    page.get_by_role("button", name="Open", exact=True).click()
    page.locator("#open-problem").filter(has_text="cannot be opened").wait_for()

    (tmp_path / "empty.csv").write_bytes(b"")
    page.locator("#file").set_input_files(tmp_path / "empty.csv")
    page.locator("#open-problem").filter(has_text="empty").wait_for()

    (tables / "ragged.csv").write_text("age,sex\n1,F\n2,M,3\n", encoding="utf-8")
    page.get_by_label("Or its path").fill("ragged.csv")
    page.get_by_role("button", name="Open", exact=True).click()
    page.wait_for_url("**/table")
    page.locator("[data-error]").filter(has_text=re.compile("line 3|row")).wait_for()

    user.go("/p/000000000000/run")
    page.get_by_text("there is no such project").wait_for()

    (tables / "people.csv").write_text(people(), encoding="utf-8")
    user.go("/")
    opened(user, "people.csv")
    user.step("Requirements")
    page.get_by_label("k *").fill("500")
    user.save()
    user.step("Run")
    page.get_by_role("button", name="Make the release").click()
    page.get_by_role("heading", name="Refused").wait_for()
    page.locator("[data-error]").filter(has_text="k-anonymity").wait_for()
    user.step("Policy")
    page.locator("#text").fill("version: 1\ncolums: {}\n")
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator(".problem").filter(has_text="did you mean 'columns'?").wait_for()
    user.page.on("dialog", lambda dialog: dialog.accept())
    user.step("Columns")
    for select in page.locator("select[name=role]").all():
        select.select_option("identifier")
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator("form > .problem").filter(has_text="no column has the role quasi-identifier").wait_for()


def test_an_upload_that_is_too_large(browser: object, context: object, tmp_path: Path, tables: Path) -> None:
    server = Server(tmp_path / "workspace", tables, ("--max-upload", "1MB"))
    server.start()
    try:
        page = context.new_page()  # type: ignore[attr-defined]
        page.goto(server.url)
        page.wait_for_url(f"{server.home}/")
        (tmp_path / "big.csv").write_bytes(b"a,b\n" * 600_000)
        page.locator("#file").set_input_files(tmp_path / "big.csv")
        page.locator("#open-problem").filter(has_text="too large").wait_for()
        assert server.api("/api/projects") == []
    finally:
        server.stop()


def test_an_upload_is_cancelled(user: User, tmp_path: Path, server: Server) -> None:
    """Percent while it goes on; afterwards nothing is kept, and the next file is taken."""
    page = user.page
    (tmp_path / "big.csv").write_bytes(b"a,b\n" + b"12,34\n" * 4_000_000)
    wire = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 500_000}
    wire.send("Network.emulateNetworkConditions", slow)
    page.locator("#file").set_input_files(tmp_path / "big.csv")
    page.locator("#drop [data-share]").filter(
        has_text=re.compile(r"^\d+ % \(big.csv\), about \d+ s left$")
    ).wait_for()
    page.locator("#drop").get_by_role("button", name="Cancel").click()
    page.locator("#open-problem").filter(has_text="nothing of the file was kept").wait_for()
    assert page.locator("#drop").get_by_role("button", name="Cancel").is_hidden()
    wire.send("Network.emulateNetworkConditions", {**slow, "uploadThroughput": -1})
    (tmp_path / "people.csv").write_text(people(), encoding="utf-8")
    page.locator("#file").set_input_files(tmp_path / "people.csv")
    page.wait_for_url("**/advice")
    assert [p["name"] for p in server.api("/api/projects")] == ["people"]
    assert len(list((server.workspace / "projects").iterdir())) == 1


def test_forms_of_columns_say_who_is_in_the_table(user: User, tables: Path) -> None:
    """Every field of the page of columns ends up in the policy, and is shown again."""
    lines = [f"{line},{1 + i % 3},{'house' if not i else i // 2},{'a;b' if i % 2 else 'b'}"
             for i, line in enumerate(people().splitlines())]  # fmt: skip
    lines[0] = "name,age,sex,town,diagnosis,stands for,house,drugs"
    (tables / "survey.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    page = user.page
    page.reload()
    page.get_by_role("button", name="survey.csv").click()
    page.wait_for_url("**/advice")
    user.step("Columns")
    for column, role in {
        "age": "quasi-identifier",
        "drugs": "sensitive",
        "stands for": "drop",
        "house": "drop",
    }.items():
        page.get_by_label(f"Role of {column}", exact=True).select_option(role)
    user.save()
    page.get_by_label("What separates several values in drugs").fill(";")
    page.get_by_label("What must stay of age").fill("exact")
    page.get_by_text("Missing values, and people with several rows").click()
    page.get_by_label("Texts that mean missing").fill("? NA")
    page.get_by_label("A person may have several rows").select_option("none")
    page.get_by_text("A sample of a larger population", exact=True).click()
    page.get_by_label("People in the population").fill("100000")
    page.get_by_label("Survey weight").select_option("stands for")
    page.get_by_label("Household").select_option("house")
    user.save()
    policy = yaml.safe_load(server_policy(user))
    assert policy["columns"]["drugs"]["multivalued"] == ";"
    assert policy["population"] == {"size": 100000}
    assert (policy["weight"], policy["household"], policy["unit"]) == ("stands for", "house", "none")
    assert policy["missing"]["tokens"] == ["?", "NA"]
    user.follow("edit the hierarchy of age")
    page.get_by_label("Importance").fill("3")
    user.save()
    assert yaml.safe_load(server_policy(user))["columns"]["age"]["weight"] == 3
    user.step("Columns")
    shown = {
        name: page.get_by_label(name, exact=True).input_value() for name in ("Survey weight", "Household")
    }
    assert shown == {"Survey weight": "stands for", "Household": "house"}
    assert page.get_by_label("What must stay of age").input_value() == "exact"


def server_policy(user: User) -> str:
    return str(user.server.api(f"/api/projects/{user.project}/policy")["text"])


def test_another_site_can_do_nothing(user: User, server: Server, tables: Path) -> None:
    """A page of another origin in the same browser, which has the cookie, tries what it can."""
    page = user.page.context.new_page()
    page.route(
        "http://evil.example/**", lambda route: route.fulfill(body="<h1>evil</h1>", content_type="text/html")
    )
    page.goto("http://evil.example/")
    outcome = page.evaluate(
        """async (home) => {
          const tries = [];
          for (const [method, headers] of [["POST", {"Content-Type": "text/plain"}], ["GET", {}]])
            try {
              const a = await fetch(home + "/api/projects", {method, headers, credentials: "include", mode: "no-cors",
                ...(method === "POST" ? {body: '{"demo": true}'} : {})});
              tries.push(a.type + a.status);
            } catch (e) { tries.push("failed"); }
          return tries; }""",
        server.home,
    )
    assert set(outcome) <= {"opaque0", "failed"}
    assert server.api("/api/projects") == []
    page.close()
    assert httpx.get(server.programs, timeout=120).status_code == 401


def test_log_out(tab: Callable[[], User], tables: Path) -> None:
    """A button on every page; afterwards no tab shows anything, and going back does not either."""
    (tables / "people.csv").write_text(people(), encoding="utf-8")
    user, other = tab(), tab()
    opened(user, "people.csv")
    user.go("/register")
    user.page.get_by_role("button", name="Log out").click()
    user.page.get_by_role("heading", name="Not logged in").wait_for()
    user.page.go_back()
    user.page.get_by_role("heading", name="Not logged in").wait_for()
    other.page.reload()
    other.page.get_by_role("heading", name="Not logged in").wait_for()
    other.page.goto(other.server.url)
    other.page.get_by_role("button", name="Log out").wait_for()


def test_light_and_dark(user: User) -> None:
    page = user.page
    colour = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    page.reload()
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    page.locator('html[data-theme="dark"]').wait_for()  # the page is told, and answers, a moment later
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.evaluate(colour) != light
    page.get_by_label("Switch between light and dark").click()
    page.locator('html[data-theme="light"]').wait_for()
    assert page.evaluate(colour) == light
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "light"


def test_a_report_is_no_wider_than_a_telephone(browser: Browser) -> None:
    """Long names of columns and the long words of its badges are broken; on a screen, tables fit beside them."""
    name = "number_of_people_being_liable_to_provide_maintenance_for"
    table = pd.DataFrame({"age": [30] * 8 + [40] * 8, name: ["flu", "cold"] * 8})
    columns = {"age": {"role": "quasi-identifier", "levels": [0]}, name: "sensitive"}
    release = mw.anonymize(table, {"columns": columns, "require": [{"model": "k-anonymity", "k": 2}]})
    page = browser.new_page()
    page.set_content(report_page(release, {}, {}))
    for width in (420, 1280):
        page.set_viewport_size({"width": width, "height": 860})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
