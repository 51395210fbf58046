"""Pictures of the workbench: `python docs/screenshots.py` takes those of docs/workbench.md; `--all DIR` of all pages.

`--survey` takes those of docs/survey.md alone, of the report of its release; `--demo` the report and the data card of
the release that `maskwright demo` makes.

Every page is seen light and dark, 420 and 1280 pixels wide; one that is wider than its window is named (exit code 1).
A workbench of its own is started on an empty workspace. Needs playwright and Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
WIDTHS, THEMES = (420, 1280), ("light", "dark")


@contextmanager
def workbench() -> Iterator[str]:
    """A running workbench; the address that a browser opens first."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "maskwright.cli", "ui", folder, "--workspace", f"{folder}/workspace",
                   "--port", "0", "--no-browser", "--json"]  # fmt: skip
        clean = {
            **os.environ,
            "MASKWRIGHT_STATE": f"{folder}/state",
        }  # nothing of what else was done on this machine
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean)  # noqa: S603 - our own command
        assert process.stdout  # noqa: S101 - for the type checker
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def shot(page: Page, name: str) -> None:
    page.wait_for_timeout(800)
    page.screenshot(path=IMAGES / f"workbench-{name}.png")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of this machine, or playwright's."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


def survey() -> int:
    """Pictures of the report that docs/survey.md makes with its first two files."""
    text = (IMAGES.parent / "survey.md").read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[0]
    policy = re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[0]
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        Path(folder, "policy.yaml").write_text(policy, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "maskwright.cli",
            "anonymize",
            "survey.csv",
            "-p",
            "policy.yaml",
            "-o",
            "release",
        ]
        clean = {**os.environ, "MASKWRIGHT_STATE": f"{folder}/state"}
        for words in ([sys.executable, "-c", code], command):
            subprocess.run(words, cwd=folder, env=clean, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
        page = browser.new_page(viewport={"width": 900, "height": 800})
        page.goto(f"file://{folder}/release/private/report.html")
        page.add_style_tag(content="nav { display: none !important; }")
        for name, first, last in (
            (
                "risk",
                "h3:text-is('Who could re-identify people')",
                "caption:text-is('Population uniqueness (estimated)')",
            ),
            ("numbers", "#perturbed-title", "caption:text-is('Which row is whose, by true numbers')"),
        ):
            top = page.locator(first).evaluate("e => e.getBoundingClientRect().top + scrollY")
            end = page.locator(last).evaluate(
                "e => e.closest('table').getBoundingClientRect().bottom + scrollY"
            )
            clip = {"x": 0, "y": top - 10, "width": 900, "height": end - top + 20}
            page.screenshot(path=IMAGES / f"survey-{name}.png", full_page=True, clip=clip)  # type: ignore[arg-type]
    return 0


def demo() -> int:
    """Pictures of the report and the data card of the release that `maskwright demo` makes."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        command = [sys.executable, "-m", "maskwright.cli", "demo", "-o", "release"]
        clean = {**os.environ, "MASKWRIGHT_STATE": f"{folder}/state"}
        subprocess.run(command, cwd=folder, env=clean, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
        page = browser.new_page(viewport={"width": 1000, "height": 1240})
        for name, file in (("report", "private/report.html"), ("data-card", "public/data-card.html")):
            page.goto(f"file://{folder}/release/{file}")
            page.screenshot(path=IMAGES / f"{name}.png")
    return 0


def main(everything: Path | None) -> int:
    with workbench() as url, chromium() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 760})
        page.set_default_timeout(600_000)
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(url)
        home = url.partition("/start")[0]
        page.wait_for_url(home + "/")
        page.get_by_role("button", name="Open the example").click()
        page.wait_for_url("**/advice")
        base = page.url.rsplit("/", 1)[0]
        shot(page, "advice")
        policy(page, base)
        release = results(page, base)
        for name, address in {"register": f"{home}/register", "home": f"{home}/"}.items():
            page.goto(address)
            shot(page, name)
        wide = every_page(page, home, base, release, everything) if everything else []
    for name in wide:
        print(name)
    return 1 if wide else 0


def policy(page: Page, base: str) -> None:
    page.goto(f"{base}/columns")
    page.get_by_label("Role of occupation").select_option("sensitive")
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator(".toast").wait_for()
    page.locator(".toast").wait_for(state="detached")
    page.evaluate("scrollTo(0, 0)")
    shot(page, "columns")
    page.goto(f"{base}/columns/3")
    page.locator("#chart canvas").wait_for()
    page.get_by_role("tab", name="Tree").click()
    shot(page, "tree")
    page.goto(f"{base}/columns/1")
    page.locator("#chart canvas").wait_for()
    page.get_by_role("tab", name="Intervals").click()
    for i, width in enumerate(("5", "10", "20")):
        if i:
            page.get_by_role("button", name="Add a level").click()
        page.get_by_label("Width or cut points").nth(i).fill(width)
    page.get_by_label("Everything from").fill("80")
    page.locator("#preview td").filter(has_text="≥80").first.wait_for()
    shot(page, "intervals")
    page.goto(f"{base}/requirements")
    page.get_by_label("Add a requirement").select_option("simple-l-diversity")
    page.get_by_role("button", name="Add", exact=True).click()
    card = page.locator('[data-model="simple-l-diversity"]')
    card.get_by_label("l *").fill("2")
    card.get_by_label("how it is used").select_option("search")
    page.evaluate("scrollTo(0, 0)")
    shot(page, "requirements")
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator(".toast").wait_for()
    page.goto(f"{base}/policy")  # a sample: what is estimated of the population is shown with the gauges
    text = page.locator("#text")
    text.fill(text.input_value() + "\npopulation: {size: 1000000}\n")
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator(".toast").wait_for()


def results(page: Page, base: str) -> str:
    """Take the pictures of what was found; the address of the release."""
    page.goto(f"{base}/run")
    page.get_by_role("button", name="Make the release").click()
    page.locator(".events li").nth(3).wait_for()
    shot(page, "run")
    page.wait_for_url("**/releases/*")
    release = page.url
    page.locator("#sizes canvas").wait_for()
    shot(page, "release")
    page.evaluate("scrollTo(0, document.getElementById('found').offsetTop - 60)")
    shot(page, "gauges")
    page.evaluate("scrollTo(0, document.getElementById('sizes').offsetTop - 60)")
    shot(page, "rows")
    for label, text in {
        "Recipient": "University of Lisbon",
        "Signed off by": "A. Keller",
        "Purpose": "Wages",
    }.items():
        page.get_by_label(label).fill(text)
    page.get_by_role("button", name="Record it").click()
    page.get_by_text("Given to").wait_for()
    page.goto(f"{release}/beside")
    page.get_by_label("Down").select_option("sex")
    page.locator("#spread-other canvas").wait_for()
    page.locator("#classes tbody tr").nth(1).click()
    shot(page, "beside")
    page.goto(f"{base}/rows")
    page.locator("body[data-spreads='drawn']").wait_for()
    shot(page, "table")
    page.goto(f"{base}/explore")
    page.get_by_role("button", name="Measure the choices").click()
    page.locator("#space-chart canvas").wait_for()
    page.locator("#choices tbody tr").nth(1).click()
    page.evaluate("scrollTo(0, 0)")
    shot(page, "explore")
    page.goto(f"{base}/method")
    page.get_by_role("button", name="Compare these").click()
    page.locator("#compare-chart canvas").wait_for()
    page.evaluate("scrollTo(0, 1e6)")
    shot(page, "compare")
    return release


def every_page(page: Page, home: str, base: str, release: str, folder: Path) -> list[str]:
    """Pictures of whole pages, as wide as a telephone and as a screen; which of them are too wide."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {
        "home": f"{home}/", "register": f"{home}/register", "release": release, "table": f"{base}/table",
        "intervals": f"{base}/columns/1", "tree": f"{base}/columns/3",
        "words": f"{home}/words", "beside": f"{release}/beside",
        **{name: f"{base}/{name}" for name in ("advice", "rows", "columns", "requirements", "method", "run", "explore",
                                               "policy")},
    }  # fmt: skip
    wide = []
    for name, address in pages.items():
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 860})
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                page.goto(address)
                page.wait_for_load_state("networkidle")
                page.wait_for_timeout(300)
                page.screenshot(path=folder / f"{name}-{width}-{theme}.png", full_page=True)
            if (taken := page.evaluate("document.documentElement.scrollWidth")) > width:
                wide.append(f"{name} takes {taken} pixels where there are {width}")
    return wide


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--all", type=Path, metavar="FOLDER", help="pictures of every page, into this folder"
    )
    options.add_argument("--survey", action="store_true", help="pictures of docs/survey.md alone")
    options.add_argument("--demo", action="store_true", help="pictures of what maskwright demo makes alone")
    asked = options.parse_args()
    sys.exit(survey() if asked.survey else demo() if asked.demo else main(asked.all))
