"""Who may call the workbench, and what it lets them reach."""

from __future__ import annotations

import io
import os
import re
import socket
import stat
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from maskwright.errors import UsageError
from maskwright.workbench import security
from maskwright.workbench.roots import Roots
from maskwright.workbench.security import BODY_LIMIT, MOST_SESSIONS, OPEN, AccessKeys, Guard, Refused
from maskwright.workbench.serve import START_PAGE, Options, _listening_sockets, browser_names, serve_workbench
from maskwright.workbench.workspace import Workspace
from tests.workbench.conftest import NAME, Bench

PAGES = ["/", "/register", "/api/projects", "/api/openapi.json", "/api/register"]


@pytest.fixture
def stranger(bench: Bench) -> Iterator[httpx.Client]:
    """Somebody without the token."""
    with httpx.Client(base_url=bench.url, timeout=120) as client:
        yield client


@pytest.fixture
def visitor(bench: Bench) -> Iterator[httpx.Client]:
    """A browser that knows the name, and not the token."""
    with httpx.Client(base_url=bench.url, headers={"Host": host(bench)}, timeout=120) as client:
        yield client


@pytest.fixture
def browser(bench: Bench, visitor: httpx.Client) -> httpx.Client:
    """A browser that opened the start address: it has the cookie, and sends no token."""
    answer = visitor.get("/start", params={"token": bench.keys.token})
    assert answer.status_code == 200
    return visitor


def host(bench: Bench) -> str:
    return f"{NAME}:{bench.keys.port}"


def csrf(client: httpx.Client) -> str:
    found = re.search(r'name="csrf" content="([0-9a-f]{64})"', client.get("/").text)
    assert found
    return found[1]


@pytest.mark.parametrize("path", PAGES)
def test_nothing_without_the_token(bench: Bench, stranger: httpx.Client, path: str) -> None:
    assert stranger.get(path).status_code == 401
    assert stranger.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert stranger.get(path, headers={"Authorization": "Bearer"}).status_code == 401
    assert stranger.get(path, headers={"Cookie": f"{bench.keys.cookie}=9999999999.aa.bb"}).status_code == 401


def test_a_wrong_token_gives_no_cookie(visitor: httpx.Client) -> None:
    for token in ("", "wrong", "é"):
        answer = visitor.get("/start", params={"token": token})
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers


def test_the_cookie_is_strict_and_closed_to_scripts(bench: Bench, visitor: httpx.Client) -> None:
    cookie = visitor.get("/start", params={"token": bench.keys.token}).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Domain" not in cookie  # of this name only, and not of names below it
    assert "Max-Age" not in cookie  # it ends with the browser
    assert "Expires" not in cookie
    assert bench.keys.token not in cookie


def test_a_session_ends_and_cannot_be_forged(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = bench.keys
    session = keys.open_session()
    assert keys.session(session.id) == session
    for forged in ("", "x", session.id[:-1], session.id + "x", session.csrf):
        assert keys.session(forged) is None
    for clock, end in (("monotonic", session.ends), ("time", session.ends_at)):  # the machine may have slept
        assert keys.session(session.id) == session
        with monkeypatch.context() as patch:
            patch.setattr(f"maskwright.workbench.security.time.{clock}", lambda end=end: end)
            assert keys.session(session.id) is None
            assert session.id not in {s.id for s in (keys.open_session(), *keys._sessions.values())}
        keys._sessions[session.id] = session


def test_the_page_that_tells_a_browser_the_address_goes_with_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the token: readable by its owner only, and not in the arguments of a process."""
    opened: list[tuple[str, str, int]] = []
    page = tmp_path / "workspace" / START_PAGE
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        "webbrowser.open",
        lambda url: opened.append((url, page.read_text("utf-8"), stat.S_IMODE(page.stat().st_mode))),
    )
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: None)
    before = os.umask(0o022)
    try:
        assert serve_workbench(Options([tmp_path], tmp_path / "workspace", port=0)) == 0
    finally:
        os.umask(before)
    [(url, text, mode)] = opened
    assert url == page.as_uri()
    assert re.search(r"url=http://[0-9a-f]{32}\.localhost:\d+/start\?token=[\w-]{43}\"", text)
    assert mode == 0o600
    assert not page.exists()


def test_a_cookie_is_of_one_start_on_one_port(bench: Bench, browser: httpx.Client) -> None:
    """Nothing on disk makes it valid: neither after a new start, nor on another port, whatever its name is there."""
    value = next(iter(browser.cookies.jar)).value
    assert value is not None
    assert browser.get("/").status_code == 200
    for port in (bench.keys.port, bench.keys.port + 1):
        assert AccessKeys(port, bench.keys.names).session(value) is None
    kept = [p.read_bytes() for p in bench.workspace.root.rglob("*") if p.is_file()]
    assert not any(value.encode() in text or bench.keys.token.encode() in text for text in kept)


def test_sessions_are_bounded(bench: Bench) -> None:
    made = [bench.keys.open_session() for _ in range(MOST_SESSIONS + 1)]
    assert bench.keys.session(made[0].id) is None
    assert all(bench.keys.session(s.id) for s in made[1:])


def test_a_cookie_is_worth_nothing_under_names_that_every_port_has(
    bench: Bench, browser: httpx.Client
) -> None:
    """127.0.0.1 and localhost are every user's: no session begins there, and none counts."""
    for name in ("127.0.0.1", "localhost", "[::1]"):
        there = {"Host": f"{name}:{bench.keys.port}"}
        assert browser.get("/api/projects", headers=there).status_code == 401
        start = httpx.get(
            f"{bench.url}/start", params={"token": bench.keys.token}, headers=there, timeout=120
        )
        assert start.status_code == 421
        assert "set-cookie" not in start.headers
        token = {"Authorization": f"Bearer {bench.keys.token}"}
        assert httpx.get(f"{bench.url}/api/projects", headers=there | token, timeout=120).status_code == 200


def test_log_out_ends_the_session_on_the_server(bench: Bench, browser: httpx.Client) -> None:
    value = next(iter(browser.cookies.jar)).value
    stolen = {"Host": host(bench), "Cookie": f"{bench.keys.cookie}={value}"}
    assert httpx.get(bench.url, headers=stolen, timeout=120).status_code == 200
    assert browser.delete("/api/session").status_code == 403  # not without the page's CSRF token
    answer = browser.delete("/api/session", headers={"X-CSRF-Token": csrf(browser)})
    assert answer.status_code == 200
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert httpx.get(bench.url, headers=stolen, timeout=120).status_code == 401
    assert "Not logged in" in browser.get("/").text
    again = browser.get("/start", params={"token": bench.keys.token})  # the start address opens another
    assert again.status_code == 200


def test_scripts_are_for_who_is_logged_in(bench: Bench, browser: httpx.Client) -> None:
    """Whoever is not gets short answers only, so that a slow reader holds nothing."""
    there = {"Host": host(bench)}
    for path in OPEN:
        assert len(httpx.get(bench.url + path, headers=there, timeout=120).content) < 40_000
    large = "/static/vendor/vega.min.js"
    assert httpx.get(bench.url + large, headers=there, timeout=120).status_code == 401
    assert browser.get(large).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", ""])
def test_other_host_names_are_refused(bench: Bench, host: str) -> None:
    """A name that an attacker rebinds to 127.0.0.1 is not ours, even with a valid token."""
    answer = bench.client.get("/api/projects", headers={"Host": host})
    assert answer.status_code == 421
    assert (
        bench.client.get("/start", params={"token": bench.keys.token}, headers={"Host": host}).status_code
        == 421
    )


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "https://127.0.0.1:8765", "http://127.0.0.1:1", "null"]
)
def test_cross_origin_posts_are_refused(bench: Bench, browser: httpx.Client, origin: str) -> None:
    token = csrf(browser)
    headers = {"Origin": origin, "X-CSRF-Token": token}
    assert browser.post("/api/projects", json={"demo": True}, headers=headers).status_code == 403
    assert bench.workspace.projects() == []


def test_fetch_metadata_of_other_sites_is_refused(browser: httpx.Client) -> None:
    token = csrf(browser)
    for site in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": site, "X-CSRF-Token": token}
        assert browser.post("/api/projects", json={"demo": True}, headers=headers).status_code == 403
        assert browser.get("/api/projects", headers={"Sec-Fetch-Site": site}).status_code == 403


def test_a_cookie_alone_changes_nothing(bench: Bench, browser: httpx.Client) -> None:
    """Forms of other sites could send the cookie; they do not know the page's CSRF token."""
    body = {"path": "people.csv"}
    assert browser.post("/api/projects", json=body).status_code == 403
    assert browser.post("/api/projects", json=body, headers={"X-CSRF-Token": "0" * 64}).status_code == 403
    assert bench.workspace.projects() == []
    assert (
        browser.post("/api/projects", json=body, headers={"X-CSRF-Token": csrf(browser)}).status_code == 201
    )


def test_every_answer_says_what_the_browser_may_do(bench: Bench, browser: httpx.Client) -> None:
    project = bench.opened()
    for path in ("/", f"/p/{project}/columns", "/api/projects", "/nowhere", "/static/nowhere.js"):
        headers = browser.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "script-src 'self'" in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
    refused = httpx.get(bench.url, timeout=120)
    assert refused.headers["content-security-policy"] == policy


def test_no_page_has_inline_scripts_styles_or_foreign_addresses(bench: Bench, browser: httpx.Client) -> None:
    project = bench.opened()
    for path in ("", "columns", "columns/1", "requirements", "method", "run", "explore", "policy", "table"):
        text = browser.get(f"/p/{project}/{path}").text if path else browser.get("/").text
        assert not re.search(r"<script(?![^>]*(src=\"/static/|type=\"application/json\"))", text)
        assert not re.search(r"<style|\sstyle=|\son\w+=\"", text)
        assert not re.search(r"(src|href)=\"(https?:)?//", text)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "../secret.csv", "people.csv/../../secret.csv", "sub/../../secret.csv", "~/.bashrc", "",
        "link.csv", "notes.md", "\0", "people.csv\0.csv", "x" * 5000, "nowhere.csv", "sub",
    ],
)  # fmt: skip
def test_no_file_outside_the_roots(bench: Bench, path: str) -> None:
    """One answer for all of them: it does not tell whether a file exists elsewhere."""
    (bench.tables.parent / "secret.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (bench.tables / "sub").mkdir()
    (bench.tables / "notes.md").write_text("no table", encoding="utf-8")
    (bench.tables / "link.csv").symlink_to(bench.tables.parent / "secret.csv")
    answer = bench.client.post("/api/projects", json={"path": path})
    assert answer.status_code == 422
    if path:
        assert "cannot be opened" in answer.json()["error"]
    assert bench.workspace.projects() == []


def test_files_named_at_the_start_can_be_opened(tmp_path: Path) -> None:
    file = tmp_path / "one.dat"
    file.write_text("a\n1\n", encoding="utf-8")
    (tmp_path / "two.csv").write_text("a\n1\n", encoding="utf-8")
    roots = Roots.of([file])
    assert roots.check(str(file)) == file
    with pytest.raises(UsageError):
        roots.check(str(tmp_path / "two.csv"))
    with pytest.raises(UsageError, match="no file or folder"):
        Roots.of([tmp_path / "three.csv"])


@pytest.mark.parametrize(
    "id_",
    [
        "%2e%2e",
        "%2e%2e%2f%2e%2e",
        "..%2f..%2fworkspace",
        "0" * 11,
        "0" * 12,
        "0" * 12 + "%2f%2e%2e%2fx",
        "con",
        "a.b",
    ],
)
def test_ids_are_never_paths(bench: Bench, id_: str) -> None:
    for path in (f"/api/projects/{id_}", f"/p/{id_}/columns", f"/api/projects/{id_}/policy.zip"):
        assert bench.client.get(path).status_code == 404
    project = bench.workspace.create("empty", bench.tables / "people.csv").id
    for path in (f"runs/{id_}", f"releases/{id_}/public.zip", f"runs/{id_}/result", f"policy.zip?run={id_}"):
        assert bench.client.get(f"/api/projects/{project}/{path}").status_code == 404


@pytest.mark.parametrize(
    "path", ["../style.css", "..%2f..%2fapp.py", "%2e%2e/%2e%2e/app.py", "js/../../app.py"]
)
def test_static_files_stay_in_their_folder(bench: Bench, path: str) -> None:
    answer = bench.client.get(f"/static/{path}")
    assert "def create_app" not in answer.text
    assert answer.status_code == 404


OUTSIDE = [
    "/etc/passwd", "../../../secret.csv", "hierarchies/../../x.csv", "missing.csv", "../{id}/project.json",
    "project.json", "hierarchies/../project.json", "hierarchies/./sex.csv", "hierarchies//sex.csv",
    "jobs/../project.json", "hierarchies", "data/people.csv", "./hierarchies/sex.csv", "hierarchies/link.csv",
    "hierarchies/..\\..\\sex.csv", "hierarchies/C:sex.csv",
]  # fmt: skip


def test_policies_load_no_language_model_from_a_folder(bench: Bench) -> None:
    """It could be anybody's folder: a project that somebody else exported names it."""
    here = f"/api/projects/{bench.opened()}"
    text = (
        bench.get(f"{here}/policy")["text"] + "\nprepare: {town: {redact: {model: /home/somebody/model}}}\n"
    )
    answer = bench.client.put(f"{here}/policy", json={"text": text})
    assert (answer.status_code, "reads no folder" in answer.text) == (422, True), answer.text


def test_policies_read_no_files_outside_their_project(bench: Bench) -> None:
    """A hierarchy file that a policy names would be read and shown; only files of the project may be."""
    (bench.workspace.root / "secret.csv").write_text("F;both\nM;both\n", encoding="utf-8")
    project = bench.opened()
    folder = bench.workspace.project(project).folder
    (folder / "hierarchies" / "sex.csv").write_text("F;both\nM;both\n", encoding="utf-8")
    for name in ("..\\..\\sex.csv", "C:sex.csv"):  # unpacked elsewhere, these lead out of the folder
        (folder / "hierarchies" / name).write_text("F;both\nM;both\n", encoding="utf-8")
    (folder / "hierarchies" / "link.csv").symlink_to(folder / "project.json")
    here = f"/api/projects/{project}"
    text = bench.get(f"{here}/policy")["text"]
    for file in (name.replace("{id}", project) for name in OUTSIDE):
        line = f"  sex: {{role: quasi-identifier, hierarchy: {{file: {file}}}}}"
        changed = re.sub(r"  sex: .*", lambda _, line=line: line, text)
        assert changed != text
        answer = bench.client.put(f"{here}/policy", json={"text": changed})
        assert answer.status_code == 422, file
        assert "has no file" in answer.json()["error"], file
        preview = bench.client.post(f"{here}/columns/2/preview", json={"spec": {"file": file}})
        assert preview.json()["ok"] is False, file
        answer = bench.client.put(f"{here}/columns/2/hierarchy", json={"spec": {"file": file}})
        assert answer.status_code == 422, file
        population = text + f"\npopulation: {{file: {file}}}\n"
        assert bench.client.put(f"{here}/policy", json={"text": population}).status_code == 422, file
        assert bench.get(f"{here}/policy")["text"] == text, file


def test_a_policy_as_a_zip_file_has_plain_names(bench: Bench) -> None:
    """Whoever unpacks it gets files below the folder that they chose."""
    project = bench.opened()
    table = "F;both\nM;both\n"
    answer = bench.client.put(f"/api/projects/{project}/columns/2/hierarchy", json={"csv": table})
    assert answer.status_code == 200, answer.text
    with zipfile.ZipFile(
        io.BytesIO(bench.client.get(f"/api/projects/{project}/policy.zip").content)
    ) as archive:
        policy, hierarchy = sorted(archive.namelist(), key=len)
        assert policy == "policy.yaml"
        assert re.fullmatch(r"hierarchies/sex-[0-9a-f]{10}\.csv", hierarchy)
        assert archive.read(hierarchy).decode() == table


def test_the_workspace_keeps_no_value_of_an_identifier(bench: Bench) -> None:
    """Neither of what was guessed to be one, nor of what somebody says is one; others are read again if need be."""
    project = bench.opened()
    folder = bench.workspace.project(project).folder

    def kept(word: str) -> list[str]:
        return [
            str(p.relative_to(folder))
            for p in folder.rglob("*")
            if p.is_file() and word in p.read_text("utf-8")
        ]

    assert kept("Person 1") == []
    assert "values/3.json" in kept("Coimbra")
    roles = {c["name"]: c["role"] for c in bench.get(f"/api/projects/{project}")["profile"]["columns"]}
    assert roles["name"] == "identifier"
    change = f"/api/projects/{project}/roles"
    assert bench.client.put(change, json={"columns": roles | {"town": "identifier"}}).status_code == 200
    assert "values/3.json" not in kept("Coimbra")
    assert "Coimbra" not in bench.client.get(f"/p/{project}/columns/3").text
    back = {"columns": roles | {"town": "quasi-identifier"}}
    assert bench.client.put(change, json=back).status_code == 200
    shown = bench.client.post(f"/api/projects/{project}/columns/3/preview", json={"spec": "suppress"}).json()
    assert {row[0] for row in shown["table"]} == {"Aveiro", "Braga", "Coimbra", "Porto"}
    assert sum(shown["rows"]) == 240


def test_uploads_are_bounded(bench: Bench) -> None:
    limit = bench.keys.upload_limit
    answer = bench.client.post("/api/uploads", content=b"x" * (limit + 1))
    assert answer.status_code == 413
    assert "too large" in answer.json()["error"]

    def endless() -> object:  # without a Content-Length
        for _ in range(limit // 1000 + 2):
            yield b"a,b\n" * 250

    answer = bench.client.post("/api/uploads", content=endless())  # type: ignore[arg-type]
    assert answer.status_code == 413
    assert bench.workspace.projects() == []
    assert list((bench.workspace.root / "projects").iterdir()) == []


def test_other_bodies_are_bounded(bench: Bench) -> None:
    answer = bench.client.post("/api/projects", content=b'{"path": "' + b"x" * BODY_LIMIT + b'"}')
    assert answer.status_code == 413
    with pytest.raises(Refused, match="too large"):  # Python reads no number of so many digits
        Guard(None, bench.keys)._bounded({"path": "/", "headers": [(b"content-length", b"9" * 5000)]}, None)  # type: ignore[arg-type]


def test_who_still_sends_too_much_reads_why(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection stays open for what is under way: a reset would take the sentence from the client."""
    monkeypatch.setattr(security, "LINGER_S", 120)  # the machine may be busy, and sending take long
    size = 8 * BODY_LIMIT
    with socket.create_connection(("127.0.0.1", bench.keys.port), timeout=120) as link:
        head = f"POST /api/projects HTTP/1.1\r\nHost: 127.0.0.1:{bench.keys.port}\r\n"
        link.sendall(
            f"{head}Authorization: Bearer {bench.keys.token}\r\nContent-Length: {size}\r\n\r\n".encode()
        )
        assert link.recv(64).startswith(b"HTTP/1.1 413")
        for _ in range(size >> 16):
            link.sendall(b"x" * (1 << 16))
            time.sleep(0.001)
        rest = b""
        while part := link.recv(1 << 16):
            rest += part
    assert b"too large: at most 4 MiB" in rest


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("../../evil.csv", "evil.csv"), ("..%2F..%2Fevil.csv", "evil.csv"), ("a%5C..%5Cb.csv", "b.csv"),
     ("%F0%9F%98%80" * 120 + ".csv", "\U0001f600" * 49 + ".csv"), ("x" * 9000 + ".csv", "x" * 196 + ".csv"),
     (".csv", "table.csv"), ("%00%0A.csv", "table.csv"), ("..", "table.csv"), ("", "table.csv")],
)  # fmt: skip
def test_names_of_uploads_stay_in_the_project(bench: Bench, sent: str, kept: str) -> None:
    answer = bench.client.post("/api/uploads", content=b"age,sex\n1,F\n", headers={"X-File-Name": sent})
    assert answer.status_code == 201, answer.text
    source = Path(answer.json()["source"]["path"])
    assert source.name == kept
    assert source.parent == bench.workspace.root / "projects" / answer.json()["id"] / "data"


def test_everything_is_readable_by_its_owner_only(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    project = bench.opened()
    root = bench.workspace.root
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    for path in (root / "projects" / project).rglob("*.json"):
        if path.name != "request.json":  # inside a folder that nobody else can enter
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_workspace_is_opened_again_but_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir(mode=0o755)
    (tmp_path / "full" / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="not a Maskwright workspace"):
        Workspace(tmp_path / "full")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError):
        Workspace(tmp_path / "file")
    first = Workspace(tmp_path / "new")
    with pytest.raises(UsageError, match="another workbench"):
        Workspace(tmp_path / "new")
    first.root.chmod(0o755)
    first.close()
    again = Workspace(tmp_path / "new")
    assert stat.S_IMODE(again.root.stat().st_mode) == 0o700
    again.close()


def test_loopback_unless_asked_otherwise() -> None:
    made = _listening_sockets(Options(port=0))
    assert {listener.getsockname()[0] for listener in made} <= {"127.0.0.1", "::1"}
    assert len({listener.getsockname()[1] for listener in made}) == 1
    for listener in made:
        listener.close()
    for address in ("0.0.0.0", "127.0.0.5"):  # noqa: S104
        with pytest.raises(UsageError, match="without encryption"):
            _listening_sockets(Options(host=address, port=0))
    with pytest.raises(UsageError, match="not an address"):
        _listening_sockets(Options(host="somewhere", port=0))
    with pytest.raises(UsageError, match="cannot be used"):
        _listening_sockets(Options(port=70_000))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_nobody_else_has_the_port_on_loopback(address: str) -> None:
    """It listens before anybody is told; a port that somebody has on either address is not used."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = _listening_sockets(Options(port=0))
    port = made[0].getsockname()[1]
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        with socket.socket(family) as other, pytest.raises(OSError, match="in use"):
            other.setsockopt(socket.SOL_SOCKET, option, 1)
            other.bind((address, port))
            other.listen()
    socket.create_connection((address, port), 5).close()
    for listener in made:
        listener.close()
    with (
        socket.create_server((address, port), family=family),
        pytest.raises(UsageError, match="cannot be used"),
    ):
        _listening_sockets(Options(port=port))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "0.0.0.0", "::"])  # noqa: S104
def test_who_bound_the_port_before_cannot_listen_once_it_is_told(address: str) -> None:
    """The system lets several bind a port (SO_REUSEADDR) as long as nobody listens."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((address, 0))
        made = _listening_sockets(Options(port=other.getsockname()[1]))
        try:
            assert all(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) for listener in made)
            with pytest.raises(OSError, match="in use"):
                other.listen()
        finally:
            for listener in made:
                listener.close()


def test_browsers_call_by_a_name_that_nobody_knows() -> None:
    first, second = browser_names(Options()), browser_names(Options())
    assert first != second
    assert re.fullmatch(r"[0-9a-f]{32}\.localhost", first[0])
    for name in ("localhost", "127.0.0.1", "::1"):  # every port has these
        assert re.fullmatch(r"[0-9a-f]{32}\.localhost", browser_names(Options(names=[name]))[0])
    assert browser_names(Options(names=["Bench.example"])) == ["bench.example"]


@pytest.mark.parametrize("text", ["", "MB", "-1GB", "1", "0MB", "1e3GB", "2 XB", "50%"])
def test_bad_sizes(text: str) -> None:
    with pytest.raises(UsageError, match=r"--max-upload .* is not an amount; write it as 4GB or 500MB"):
        serve_workbench(Options(max_upload=text))


def test_an_internal_error_shows_no_data(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object) -> None:
        raise RuntimeError("Ada Lovelace, 36, cancer")

    monkeypatch.setattr(Workspace, "projects", broken)
    for path in ("/api/projects", "/"):
        answer = bench.client.get(path)
        assert answer.status_code == 500
        assert "RuntimeError" in answer.text
        assert "Lovelace" not in answer.text


def test_malformed_requests_are_not_repeated(bench: Bench) -> None:
    """Pydantic's own message would quote what was sent."""
    answer = bench.client.post("/api/projects", json={"path": ["Ada Lovelace"]})
    assert answer.status_code == 422
    assert "Lovelace" not in answer.text
