"""Take the screenshots of docs/workbench.md from a running workbench: python docs/screenshots.py URL

URL is the address that `maskwright ui` prints; use an empty workspace. Needs playwright and Chromium.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"


def shot(page: Page, name: str) -> None:
    page.wait_for_timeout(800)
    page.screenshot(path=IMAGES / f"workbench-{name}.png")


def main(url: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 760})
        page.set_default_timeout(120_000)
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(url)
        page.wait_for_url(url.partition("/start")[0] + "/")
        page.get_by_role("button", name="Open the example").click()
        page.wait_for_url("**/columns")
        home, base = url.partition("/start")[0], page.url.rsplit("/", 1)[0]
        policy(page, base)
        results(page, base)
        page.goto(f"{home}/register")
        shot(page, "register")
        page.goto(f"{home}/")
        shot(page, "home")
        browser.close()


def policy(page: Page, base: str) -> None:
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


def results(page: Page, base: str) -> None:
    page.goto(f"{base}/run")
    page.get_by_role("button", name="Make the release").click()
    page.locator(".events li").nth(3).wait_for()
    shot(page, "run")
    page.wait_for_url("**/releases/*")
    page.locator("#sizes canvas").wait_for()
    shot(page, "release")
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


if __name__ == "__main__":
    main(sys.argv[1])
