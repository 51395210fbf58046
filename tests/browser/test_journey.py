"""The whole journey in a browser: on Adult, and on a messy CSV; with the mouse, and with the keyboard alone."""

from __future__ import annotations

import csv
import io
import re
import shutil
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import maskwright as mw
from tests.browser.conftest import User
from tests.support import ADULT

if TYPE_CHECKING:
    from playwright.sync_api import Page

ILL = ["Grippe", "Asthma", "", "Gicht", '"Herz; Kreislauf"']
MESSY = "Nr;Nachname;Alter;Geschlecht;PLZ;Aufnahme;Diagnose\n" + "".join(
    f"{i};M\u00fcller {i};{'?' if i % 40 == 7 else 30 + i * 7 % 40};{'wm'[i % 2]};{50667 + i % 3 * 2};"
    f"{1 + i % 28:02}.{1 + i % 12:02}.2024;{ILL[i % 5]}\n"
    for i in range(300)
)
# The place of a point of the chart on the canvas.
PLACE = """() => {
  const view = document.getElementById("space-chart").view, found = [], pad = view.padding();
  const o = [view.origin()[0] + pad.left, view.origin()[1] + pad.top];
  const walk = (item, x, y) => {
    for (const i of item.items || []) {
      if (i.mark?.marktype === "symbol" && i.datum?.i === 0) found.push([x + i.x + o[0], y + i.y + o[1]]);
      else walk(i, x + (i.x || 0), y + (i.y || 0));
    }
  };
  walk(view.scenegraph().root, 0, 0);
  return found[0];
}"""

# What stands at the axes of the chart of methods: shares, in percent.
AXIS_LABELS = """() => {
  const found = [];
  const walk = (item) => {
    if (item.mark?.role === "axis-label") found.push(item.text);
    for (const i of item.items || []) walk(i);
  };
  walk(document.getElementById("compare-chart").view.scenegraph().root);
  return found;
}"""
# What an axis below a chart writes, what it leaves out, and which neighbours are written over each other.
NAMES_BELOW = """(id) => {
  const shown = [], left = [], touching = [];
  const walk = (item) => {
    if (item.role === "axis-label" && item.items.length > 1 && new Set(item.items.map((i) => i.y)).size === 1) {
      for (const i of item.items) (i.opacity ? shown : left).push(i);
    }
    for (const i of item.items || []) walk(i);
  };
  walk(document.getElementById(id).view.scenegraph().root);
  shown.forEach((next, n) => {
    const last = shown[n - 1];
    const near = last && (next.angle ? next.x - last.x < 18 : next.bounds.x1 < last.bounds.x2);
    if (near) touching.push([last.text, next.text]);
  });
  return { shown: shown.map((i) => i.text), left: left.map((i) => i.text), touching };
}"""


def below(page: Page, chart: str, least: int) -> dict[str, list[str]]:
    """What NAMES_BELOW finds, as soon as a chart is drawn and has that many names."""
    page.locator(f"#{chart} canvas").wait_for()
    deadline = time.monotonic() + 120
    while True:
        found: dict[str, list[str]] = page.evaluate(NAMES_BELOW, chart)
        if len(found["shown"] + found["left"]) >= least:
            return found
        assert time.monotonic() < deadline, found
        page.wait_for_timeout(100)


def test_adult(user: User, tables: Path, tmp_path: Path) -> None:
    shutil.copyfile(ADULT / "adult.csv", tables / "adult.csv")
    page = user.page
    page.reload()
    page.get_by_role("button", name="adult.csv").click()
    page.wait_for_url("**/advice")

    # the table: every column with its picture; sorted by numbers, and only some of its rows
    page.get_by_role("navigation", name="Steps").get_by_role("link", name="Table").click()
    page.locator("body[data-spreads='drawn']").wait_for()
    assert page.locator(".spread rect").count() > 30
    page.get_by_role("button", name="age").click()
    page.get_by_role("columnheader", name=re.compile("^age")).and_(
        page.locator("[aria-sort=ascending]")
    ).wait_for()
    page.get_by_label("Rows in which").select_option("education")
    page.locator("#text").fill("MASTERS")
    page.get_by_role("button", name="Show only these").click()
    page.locator("#where").get_by_text("of 1,627 rows").wait_for()
    ages = [row.locator("td").nth(1).inner_text() for row in page.locator("#rows tbody tr").all()[:5]]
    assert ages == sorted(ages)

    user.step("Columns")
    assert "46.5 % of the rows are unique" in page.locator(".lead").inner_text()
    page.get_by_label("Role of occupation").select_option("sensitive")
    page.get_by_label("Role of salary-class").select_option("quasi-identifier")
    user.save()

    # a hierarchy by intervals: a width that does not nest is refused, the corrected one is previewed and saved
    user.follow("edit the hierarchy of age")
    page.locator("#preview td").filter(has_text="20-39").first.wait_for()
    page.get_by_label("Width or cut points").nth(1).fill("12")
    page.locator("#problem").filter(has_text="make 12 a multiple of 5").wait_for()
    page.get_by_label("Width or cut points").nth(1).fill("10")
    page.get_by_label("Everything from").fill("80")
    page.locator("#preview td").filter(has_text="≥80").first.wait_for()
    user.save()

    # a tree: by dragging, and by indentation; errors are shown at the value
    user.follow("marital-status")
    page.get_by_role("tab", name="Tree").click()
    married = [f"Married-{x}" for x in ("AF-spouse", "civ-spouse", "spouse-absent")]
    page.get_by_label("As text").fill(
        "\n".join(["Divorced", *married, "Never-married", "Separated", "Widowed"])
    )
    page.once("dialog", lambda dialog: dialog.accept("Alone"))
    page.locator("#tree li").filter(has_text="Divorced").click()
    page.get_by_role("button", name="New category").click()
    page.locator("#tree .node").filter(has_text="Widowed").drag_to(
        page.locator("#tree .node").filter(has_text="Alone")
    )
    text = page.get_by_label("As text").input_value()
    assert text.startswith("Alone\n  Divorced\n  Widowed")
    page.get_by_label("As text").fill(text.replace("\n  Widowed", "").replace("Widowed\n", ""))
    page.locator("#preview tr.wrong").filter(has_text="Widowed").wait_for()
    indented = "Alone\n  Divorced\n  Never-married\n  Separated\n  Widowed\nMarried\n  Married-AF-spouse\n"
    page.get_by_label("As text").fill(indented + "  Married-civ-spouse\n  Married-spouse-absent")
    page.locator("#levels").get_by_text("depth 1: 2").wait_for()
    user.save()

    # a pasted table
    user.follow("race", exact=True)
    page.get_by_role("tab", name="Paste a table").click()
    pasted = "White;White\nBlack;other\nOther;other\nAmer-Indian-Eskimo;other\n"
    page.locator("#csv-text").fill(pasted)
    page.locator("#preview tr.wrong").filter(has_text="Asian-Pac-Islander").wait_for()
    page.locator("#csv-text").fill(pasted + "Asian-Pac-Islander;other\n")
    page.locator("#preview td.merged").filter(has_text="other").wait_for()
    user.save()

    # requirements: explained with their numbers, errors at their field
    user.step("Requirements")
    page.get_by_text("Every class holds at least 11 people.").wait_for()
    page.get_by_label("k *").fill("0")
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator('[data-field="k"] .problem').filter(has_text="least allowed is 1").wait_for()
    page.get_by_label("k *").fill("5")
    page.get_by_text("Every class holds at least 5 people.").wait_for()
    page.get_by_label("Add a requirement").select_option("distinct-l-diversity")
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator('[data-model="distinct-l-diversity"]').get_by_label("l *").fill("2")
    page.locator('[data-model="distinct-l-diversity"]').get_by_label("how it is used").select_option("search")
    user.save()

    user.step("Method")
    page.get_by_role("radio", name=re.compile("^optimal-lattice")).check()
    page.get_by_role("textbox", name="suppression").first.fill("0.05")
    user.save()

    user.step("Run")
    page.get_by_role("button", name="Make the release").click()
    page.wait_for_url("**/releases/*")
    page.get_by_text("Every requirement holds, recounted from the files").wait_for()
    assert page.locator("table.attacks tbody tr").count() >= 3
    assert page.locator(".pairs tr.after").count() == 12
    page.locator("#sizes canvas").wait_for()
    drawn = "bars => bars.map(b => [b.getBBox().width, Number(b.getAttribute('width'))])"
    bars = page.locator(".gauges rect.bar").evaluate_all(drawn)
    assert len(bars) >= 4 and all(abs(shown - asked) < 0.1 for shown, asked in bars), "to scale"
    project, run = user.project, page.url.rsplit("/", 1)[1]

    # what is downloaded is what was promised: five people in every class
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the release").click()
    archive = zipfile.ZipFile(download.value.path())
    rows = list(csv.DictReader(io.StringIO(archive.read("data.csv").decode())))
    known = [c for c in rows[0] if c != "occupation"]
    assert min(Counter(tuple(row[c] for c in known) for row in rows).values()) >= 5
    with page.expect_download() as download:
        page.get_by_role("link", name="Its policy").click()
    zipfile.ZipFile(download.value.path()).extractall(tmp_path / "policy")
    again = mw.anonymize(tables / "adult.csv", tmp_path / "policy" / "policy.yaml").as_dict()
    made = user.server.api(f"/api/projects/{user.project}/runs/{run}/result")["release"]
    assert again["levels"] == made["levels"]
    assert again["rows"] == made["rows"]

    # beside the table: two columns against each other, and who is in a class
    user.follow("Beside the table")
    page.locator("#spread-other canvas").wait_for()
    page.get_by_label("Down").select_option("sex")
    page.get_by_label("Across").select_option("occupation")
    page.locator("#before").get_by_role("row", name=re.compile("^Female.*9,782$")).wait_for()
    names = below(page, "spread-other", 11)
    assert (names["left"], names["touching"]) == ([], [])
    page.locator("#classes tbody tr").first.click()
    page.locator("#members").get_by_text("rows of this class").wait_for()
    assert (
        page.locator("#members th").first.inner_text() == "rows"
    )  # alike ones are counted: seen without scrolling
    assert (
        page.evaluate("document.documentElement.scrollWidth") <= 1280
    )  # long tables scroll inside their frame
    page.go_back()

    # attack again as an insider
    page.get_by_label("Attack again as").select_option("insider")
    page.get_by_role("button", name="Attack", exact=True).click()
    page.get_by_role("heading", name="As insider").wait_for()

    # the solution space: click a point, publish another choice
    user.step("Explore")
    page.get_by_role("button", name="Measure the choices").click()
    chart = page.locator("#space-chart canvas")
    chart.wait_for()
    page.locator("#choices tbody tr").nth(1).click()
    page.locator("#detail").get_by_text("Choice 2").wait_for()
    page.locator("#space-chart[data-drawn='2']").wait_for()
    spot = page.evaluate(PLACE)
    page.locator("#space-chart canvas").click(position={"x": spot[0], "y": spot[1]})
    page.locator("#detail").get_by_text("Choice 1", exact=True).wait_for()
    # only choices that keep sex, the least suppressed first
    everything = page.locator("#choices tbody tr:visible").count()
    page.get_by_text("Only choices that keep").click()
    page.get_by_label("Level of sex").select_option("kept")
    kept = page.locator("#choices tbody tr:visible")
    page.get_by_text(f"of {everything} choices are like that").wait_for()
    assert 0 < kept.count() < everything
    assert all("sex: any" not in text for text in kept.all_inner_texts())
    page.get_by_label("Level of sex").select_option("")
    page.locator("#choices thead").get_by_role("button", name="suppressed").click()
    dropped = [
        int(t.replace(",", "")) for t in page.locator("#choices tbody td:nth-child(4)").all_inner_texts()
    ]
    assert dropped == sorted(dropped)
    page.locator("#choices tbody tr").nth(1).click()
    page.get_by_role("button", name="Publish at these levels").click()
    page.wait_for_url("**/run")
    page.get_by_text("Fixed levels").wait_for()
    page.get_by_role("button", name="Make the release").click()
    page.wait_for_url("**/releases/*")

    # the register
    page.get_by_label("Recipient").fill("University of Lisbon")
    page.get_by_label("Signed off by").fill("A. Keller")
    page.get_by_role("button", name="Record it").click()
    page.get_by_text("Given to University of Lisbon").wait_for()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Register").click()
    page.get_by_role("row", name=re.compile("University of Lisbon.*A. Keller")).wait_for()

    # the first release is given out too: what do both tell together?
    user.go(f"/p/{project}/releases/{run}")
    page.get_by_label("Recipient").fill("Ministry of Labour")
    page.get_by_label("Signed off by").fill("A. Keller")
    page.get_by_role("button", name="Record it").click()
    page.get_by_text("Given to Ministry of Labour").wait_for()
    user.go("/register")
    page.get_by_role("button", name="Attack the chosen releases together").click()
    page.locator("form > .problem").filter(has_text="at least two").wait_for()
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Attack the chosen releases together").click()
    page.locator("table.attacks").get_by_text("intersection").wait_for()

    # no page is wider than a telephone
    page.set_viewport_size({"width": 420, "height": 860})
    base, steps = (
        f"/p/{project}",
        ("advice", "rows", "columns", "columns/1", "requirements", "method", "run", "explore"),
    )
    addresses = ["/", "/register", "/words", f"{base}/releases/{run}", f"{base}/releases/{run}/beside"]
    for address in [*addresses, *(f"{base}/{step}" for step in steps)]:
        user.go(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 420, address
    user.go(f"{base}/releases/{run}")
    names = below(page, "sizes", 6)
    assert (names["left"], names["touching"]) == ([], [])


def test_methods_are_compared(user: User) -> None:
    page = user.page
    page.get_by_role("button", name="Open the example table").click()
    page.wait_for_url("**/advice")
    user.step("Method")
    page.get_by_role("button", name="Compare these methods").click()
    page.wait_for_url("**/explore")
    page.locator("#compare-chart canvas").wait_for()
    labels = page.evaluate(AXIS_LABELS)
    assert labels
    assert all(label.endswith("%") for label in labels)
    table = page.locator("section").filter(has_text="Methods compared").last
    for method in ("optimal-lattice", "local-recoding", "mondrian"):
        table.get_by_role("row", name=re.compile(method)).wait_for()
    page.get_by_role("button", name="Use mondrian").click()
    page.wait_for_url("**/run")
    page.get_by_text("mondrian, generalise").wait_for()


def test_a_messy_file(user: User, tmp_path: Path) -> None:
    """Latin-1, semicolons, quotes, '?' for missing, German dates: refused with reasons, then read and published."""
    page = user.page
    file = tmp_path / "Patienten.csv"
    file.write_bytes(MESSY.encode("latin-1"))
    page.locator("#file").set_input_files(file)
    page.wait_for_url("**/table")
    page.locator("[data-error]").filter(has_text=re.compile("encoding", re.I)).wait_for()
    page.get_by_label("Encoding").select_option("latin-1")
    page.get_by_role("button", name="Look again").click()
    page.wait_for_url("**/advice")
    user.step("Columns")
    for column, role in {
        "Nr": "identifier", "Nachname": "identifier", "Alter": "quasi-identifier", "Geschlecht": "quasi-identifier",
        "PLZ": "quasi-identifier", "Aufnahme": "quasi-identifier", "Diagnose": "sensitive",
    }.items():  # fmt: skip
        assert page.get_by_label(f"Role of {column}").input_value() == role, column
    page.get_by_text("Missing values, and people").click()
    assert page.get_by_label("Texts that mean missing").input_value() == "?"

    user.follow("edit the hierarchy of Aufnahme")
    page.locator("#preview td").filter(has_text=re.compile("2024")).first.wait_for()
    assert page.get_by_label("How dates are written").input_value() == "%d.%m.%Y"
    # postcodes in groups: by clicking, without a word of YAML
    user.step("Columns")
    user.follow("edit the hierarchy of PLZ")
    page.get_by_role("tab", name="Groups").click()
    for name, values in {"centre": ("50667", "50669"), "south": ("50671",)}.items():
        page.get_by_role("button", name="Add a group").first.click()
        page.get_by_label("Name of the group").last.fill(name)
        for value in values:
            page.locator("#groups-rest").get_by_role("button", name=value).click()
    page.locator("#preview td").filter(has_text="centre").first.wait_for()
    user.save()
    user.step("Requirements")
    page.get_by_label("k *").fill("5")
    user.remove("simple-l-diversity")
    user.save()
    user.step("Run")
    page.get_by_role("button", name="Make the release").click()
    page.wait_for_url("**/releases/*")
    page.get_by_text("Every requirement holds").wait_for()
    assert "M\u00fcller" not in page.content()


def test_with_the_keyboard_alone(user: User, tables: Path) -> None:
    """From the path of a file to the release without a mouse; the focus is always visible."""
    from tests.workbench.conftest import people

    (tables / "people.csv").write_text(people(), encoding="utf-8")
    page = user.page

    def focus(role: str, name: str, presses: int = 60) -> None:
        for _ in range(presses):
            found = page.get_by_role(role, name=name).first  # type: ignore[arg-type]
            if found.count() and found.evaluate("e => e === document.activeElement"):
                outline = found.evaluate(
                    "e => getComputedStyle(e).outlineStyle + getComputedStyle(e).outlineWidth"
                )
                assert outline == "solid3px", f"{name}: the focus cannot be seen"
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{name} cannot be reached with the keyboard")

    focus("combobox", "Or its path")
    page.keyboard.type("people.csv")
    page.keyboard.press("Enter")
    page.wait_for_url("**/advice")
    focus("link", "Look at the columns first")
    page.keyboard.press("Enter")
    page.wait_for_url("**/columns")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    focus("combobox", "Role of diagnosis")
    page.keyboard.type("Sens")
    focus("link", "edit the hierarchy of sex")
    page.keyboard.press("Enter")
    page.wait_for_url("**/columns/*")
    focus("tab", "All or nothing")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Tree").get_attribute("aria-selected") == "true"
    page.locator("#tree li").first.wait_for()
    page.keyboard.press("Tab")  # the text
    page.keyboard.press("Escape")  # Tab would indent, until Escape is pressed
    page.keyboard.press("Tab")  # "New category"
    page.keyboard.press("Tab")  # the tree
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Alt+ArrowRight")  # M under F
    assert page.get_by_label("As text").input_value().startswith("F\n  M")
    page.locator("#problem").filter(has_text="F").wait_for()  # a value cannot be a category
    page.keyboard.press("Alt+ArrowLeft")
    page.locator("#problem").wait_for(state="hidden")
    focus("button", "Save")
    user.saved_by(lambda: page.keyboard.press("Enter"))
    focus("link", "Requirements")
    page.keyboard.press("Enter")
    page.wait_for_url("**/requirements")
    focus("textbox", "k")
    page.keyboard.press("Control+a")
    page.keyboard.type("4")
    focus("button", "Remove simple-l-diversity")
    page.keyboard.press("Enter")
    focus("button", "Save")
    user.saved_by(lambda: page.keyboard.press("Enter"))
    focus("link", "Run")
    page.keyboard.press("Enter")
    page.wait_for_url("**/run")
    focus("button", "Make the release")
    page.keyboard.press("Enter")
    page.wait_for_url("**/releases/*")
    focus("link", "Download the release")
