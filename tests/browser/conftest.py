"""`maskwright ui` as users start it, and a headless Chromium. Without one the tests are skipped, but not in CI."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support import unavailable

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 120_000  # ms; machines are shared
# What a page says for some seconds only stays at its root: on a busy machine nobody may look while it is there.
KEEP_TOASTS = """new MutationObserver(changes => {
  for (const change of changes) for (const node of change.addedNodes)
    if (node.classList?.contains("toast")) document.documentElement.dataset.said = node.textContent;
}).observe(document, {childList: true, subtree: true});"""


@dataclass
class Server:
    """A running workbench; it can be stopped and started again on the same workspace."""

    workspace: Path
    tables: Path
    options: tuple[str, ...] = ()
    process: subprocess.Popen[str] | None = None
    url: str = ""
    token: str = ""
    port: int = 0
    program: tuple[str, ...] = ("-m", "maskwright.cli")

    def start(self) -> None:
        command = [
            sys.executable, *self.program, "ui", str(self.tables), "--workspace", str(self.workspace),
            "--port", str(self.port), "--no-browser", "--json", *self.options,
        ]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        said = json.loads(self.process.stdout.readline())
        self.url, self.token = said["url"], said["token"]
        self.port = int(self.home.rpartition(":")[2])

    @property
    def home(self) -> str:
        return self.url.partition("/start")[0]

    @property
    def programs(self) -> str:
        """The address for programs, which need not know names below localhost."""
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(120)
            assert self.process.stdout
            self.process.stdout.close()
            self.process = None

    def api(self, path: str) -> Any:
        answer = httpx.get(
            self.programs + path, headers={"Authorization": f"Bearer {self.token}"}, timeout=120
        )
        assert answer.status_code == 200, answer.text
        return answer.json()


@dataclass
class User:
    """A tab, and whatever went wrong in it."""

    page: Page
    server: Server
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        self.page.goto(self.server.home + path)

    @property
    def project(self) -> str:
        return self.page.url.split("/p/")[1].split("/")[0]

    def step(self, name: str) -> None:
        self.page.get_by_role("navigation", name="Steps").get_by_role("link", name=name).click()
        self.page.wait_for_url(f"**/{name.lower()}")

    def follow(self, name: str, exact: bool = False) -> None:
        """Click a link, and wait until the page behind it is loaded: before, a click would meet the page that goes."""
        before = self.page.url
        self.page.get_by_role("link", name=name, exact=exact).click()
        self.page.wait_for_url(lambda url: url != before)

    def remove(self, model: str) -> None:
        """Every requirement of this model."""
        buttons = self.page.get_by_role("button", name=f"Remove {model}")
        while buttons.count():
            buttons.first.click()

    def save(self) -> None:
        self.saved_by(self.page.get_by_role("button", name="Save", exact=True).click)

    def saved_by(self, act: Callable[[], None]) -> None:
        """Do what saves, and wait until the page, which most pages load anew for it, says so."""
        self.page.evaluate("() => { delete document.documentElement.dataset.said; }")
        act()
        self.page.locator('html[data-said^="Saved."]').wait_for(state="attached")
        self.page.wait_for_load_state()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        unavailable("playwright is not installed")
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        unavailable("no Chromium is installed")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield made
        made.close()


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    return folder


@pytest.fixture
def server(tmp_path: Path, tables: Path) -> Iterator[Server]:
    made = Server(tmp_path / "workspace", tables)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(
        viewport={"width": 1280, "height": 860}, accept_downloads=True, reduced_motion="reduce"
    )
    made.set_default_timeout(PATIENCE)
    made.set_default_navigation_timeout(PATIENCE)
    made.add_init_script(KEEP_TOASTS)
    yield made
    made.close()


@pytest.fixture
def tab(context: BrowserContext, server: Server) -> Iterator[Callable[[], User]]:
    """Open a tab that has started; at the end none of them may have complained."""
    users: list[User] = []

    def opened() -> User:
        user = User(context.new_page(), server)
        user.page.on("pageerror", lambda error: user.complaints.append(str(error)))
        user.page.on(
            "console",
            lambda m: (
                user.complaints.append(m.text)
                if m.type == "error" and "Failed to load resource" not in m.text
                else None
            ),
        )
        user.page.goto(server.url)
        user.page.wait_for_url(f"{server.home}/")
        users.append(user)
        return user

    yield opened
    assert [c for user in users for c in user.complaints] == []


@pytest.fixture
def user(tab: Callable[[], User]) -> User:
    return tab()
