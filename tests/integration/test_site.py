"""The site of the documentation in a real browser: from files and below any path, found by the words of newcomers."""

from __future__ import annotations

import json
import mimetypes
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.browser import LOOKS, Browser, browser, faults_of
from support.http_servers import Reply, Request, http_server
from support.needs import missing
from support.processes import ROOT

NEW, OLD = "2.10", "2.9"
WORDS = {
    "alert": "how-to/runbook",
    "api token": "how-to/set-up-a-team",
    "backup": "how-to/back-up-and-upgrade",
    "bootstrap": "reference/outages",
    "client key": "how-to/connect-an-sdk",
    "compose": "how-to/container",
    "config file": "reference/options",
    "cors": "reference/options",
    "custom strategy": "how-to/custom-strategies",
    "docker": "how-to/container",
    "edge": "how-to/move-over-from-edge",
    "enricher": "how-to/context-enrichers",
    "environment": "how-to/serve-several-environments",
    "environment variables": "reference/options",
    "export": "how-to/move-flags-between-servers",
    "fastapi": "how-to/mount-in-an-application",
    "getting started": "how-to/first-day",
    "gitlab": "how-to/use-gitlab",
    "gradual rollout": "how-to/use-the-pages",
    "health": "how-to/container",
    "helm": "how-to/kubernetes",
    "high availability": "how-to/scale-out",
    "history": "how-to/use-the-pages",
    "https": "how-to/tls-sockets-and-operators",
    "import": "how-to/move-flags-between-servers",
    "install": "reference/installing",
    "javascript": "how-to/connect-an-sdk",
    "kubernetes": "how-to/container",
    "log level": "reference/log",
    "login": "how-to/sign-in-with-your-identity-provider",
    "logs": "reference/log",
    "metrics": "reference/metrics",
    "migrate": "how-to/move-over-from-edge",
    "mount": "how-to/mount-in-an-application",
    "ofrep": "how-to/connect-an-sdk",
    "oidc": "how-to/sign-in-with-your-identity-provider",
    "openfeature": "how-to/connect-an-sdk",
    "outage": "reference/outages",
    "permissions": "how-to/set-up-a-team",
    "pgbouncer": "how-to/several-servers",
    "postgresql": "how-to/several-servers",
    "project": "how-to/set-up-a-team",
    "prometheus": "reference/metrics",
    "python sdk": "how-to/connect-an-sdk",
    "rate limit": "how-to/limit-callers",
    "react": "how-to/connect-an-sdk",
    "readiness": "reference/endpoints",
    "redis": "how-to/scale-out",
    "reload": "how-to/roll-out-and-change-keys",
    "restore": "how-to/back-up-and-upgrade",
    "rollout": "how-to/use-the-pages",
    "rotate key": "how-to/roll-out-and-change-keys",
    "seed": "how-to/run-the-flag-server",
    "segments": "how-to/use-the-pages",
    "sqlite": "how-to/run-the-flag-server",
    "sso": "how-to/sign-in-with-your-identity-provider",
    "sticky": "how-to/use-the-pages",
    "systemd": "how-to/systemd",
    "tags": "how-to/use-the-pages",
    "tls": "how-to/tls-sockets-and-operators",
    "tutorial": "how-to/first-day",
    "undo": "how-to/use-the-pages",
    "unix socket": "how-to/tls-sockets-and-operators",
    "unleash proxy": "how-to/move-over-from-the-reference",
    "upgrade": "how-to/back-up-and-upgrade",
    "users": "how-to/set-up-a-team",
    "variant": "how-to/use-the-pages",
    "webhook": "how-to/webhooks",
    "workers": "how-to/run-several-workers",
}
"""What newcomers search → the page that must come first."""
SEARCH = """words => Object.fromEntries(words.map(word => {
  document.querySelector('.sidebar-search').value = word;
  return [word, Search._performSearch(...Search._parseQuery(word)).at(-1)?.[0]];
}))"""
KINDS = {
    "tutorial": "docs/how-to/first-day",
    "how-to": "docs/how-to/webhooks",
    "reference": "docs/reference/metrics",
    "contract": "docs/contract/README",
    "explanation": "docs/decisions/README",
    "figures": "docs/benchmarks/pages",
    "first page": "index",
    "search": "search",
}
FIRST = "document.querySelector('ul.search a')"


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a folder as `make site` does."""
    if find_spec("sphinx") is None:
        missing("Sphinx is not installed: `make site` installs it")
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-c", str(ROOT / "docs"), "-d", str(target.parent / ".doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(target)]
    return subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a site with two versions, where a stub stands for the older one."""
    folder = tmp_path_factory.mktemp("site")
    for page in ("index.html", "docs/how-to/webhooks.html"):
        (folder / OLD / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / OLD / page).write_text(f"<title>the older {page}</title>")
    done = build(ROOT, folder / NEW)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    """Give a browser."""
    with browser() as running:
        yield running


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_wrong_with_a_page_of_each_kind(kind: str, site: Path, page: Browser) -> None:
    """As files, wide and on a phone, light and dark: no complaint, no other address, nothing that axe finds."""
    query = "?q=webhook" if kind == "search" else ""
    url = f"{(site / NEW / KINDS[kind]).with_suffix('.html').as_uri()}{query}"
    found = []
    for width, look in ((1440, "light"), (360, "dark")):
        page.call("Emulation.setEmulatedMedia", features=LOOKS[look])
        found += faults_of(page, url, width)
        found += [each for each in page.requested() if not each.startswith((site.as_uri(), "data:"))]
    assert found == []


def test_newcomers_find_the_right_page_first(site: Path, page: Browser) -> None:
    """The first page that a search gives is that of the table, and the address of the search shows it."""
    page.go(f"{(site / NEW / 'search.html').as_uri()}?q=docker")
    assert page.wait_for(f"{FIRST}?.href").endswith(f"{WORDS['docker']}.html")
    found = page.run(f"({SEARCH})({json.dumps(list(WORDS))})")
    assert found == {word: f"docs/{right}" for word, right in WORDS.items()}


def test_below_any_path(site: Path, page: Browser) -> None:
    """The first address leads to the newest version. The search quotes the pages. Each version leads to the same page of the
    others."""
    base = "/some/path"

    def answer(request: Request) -> Reply:
        file = site / request.path.removeprefix(f"{base}/")
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        return Reply(200, file.read_bytes(), {"Content-Type": kind}) if file.is_file() else Reply(404)

    with http_server(answer) as server:
        page.go(f"{server}{base}/index.html")
        page.wait_for(f"location.pathname === '{base}/{NEW}/index.html' && document.title.includes('{NEW}')")
        page.go(f"{server}{base}/{NEW}/search.html?q=webhook")
        page.wait_for("document.querySelector('ul.search p.context') !== null")
        page.follow("ul.search a")
        assert page.run("document.querySelector('h1').textContent").startswith("Webhooks")
        assert page.run("[...document.querySelectorAll('#versions a')].map(each => each.textContent)") == [NEW, OLD]
        page.follow("#versions li:last-child a")
        assert page.run("document.title") == "the older docs/how-to/webhooks.html"
        page.go(f"{server}{base}/{NEW}/README.html")
        page.follow("#versions li:last-child a")
        assert page.run("document.title") == "the older index.html"
        assert all(each.startswith((server, "data:")) for each in page.requested())


def test_by_keyboard_on_a_phone(site: Path, page: Browser) -> None:
    """Tab comes to the menu and to no link that is out of sight; the space bar opens the menu, where Tab comes to the search."""
    page.call("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=False)
    page.go((site / NEW / "index.html").as_uri())
    reached = press(page, "Tab", until="nav-overlay-icon")
    assert reached[0].startswith("skip-to-content")
    press(page, " ")
    page.wait_for("document.querySelector('.sidebar-drawer').getBoundingClientRect().left === 0")
    press(page, "Tab", until="sidebar-search")
    press(page, "Tab", until="toctree-l1")


def press(page: Browser, key: str, until: str = "") -> list[str]:
    """Press a key, at most 20 times, until an element of this class, or within it, has the focus. Return what had the focus."""
    code = {"Tab": 9, " ": 32}[key]
    reached: list[str] = []
    while not reached or until not in reached[-1]:
        assert len(reached) < 20, reached
        for kind in ("rawKeyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)
        assert page.run("document.activeElement.getBoundingClientRect().right > 0"), reached
        reached.append(page.run("`${document.activeElement.className} ${document.activeElement.parentElement?.className}`"))
    return reached


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    """A link to a page or a heading that is not there is an error, which names the link."""
    links = ["docs/nowhere.md", "docs/some.md#nothing"]
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# First\n\n[Some](docs/some.md)\n" + "".join(f"[other]({link})\n" for link in links))
    (tmp_path / "docs" / "some.md").write_text("# Some\n")
    done = build(tmp_path, tmp_path / "site" / NEW)
    assert done.returncode != 0
    assert all(link.rpartition("#")[2] in done.stderr for link in links)
