"""The proxy's pages of a running proxy: in a real browser, and with workers."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flagsvc.pages.templates import segment
from support.browser import LOOKS, Browser, browser, faults_of
from support.desk_scene import DOCUMENT, HOSTILE
from support.processes import Proxy, answers, ask, free_port, our_proxy
from support.waiting import wait_until

pytestmark = pytest.mark.programs

PAGES = (
    "/ui/status",
    "/ui/flags",
    f"/ui/flags/{segment(HOSTILE)}",
    "/ui/flags/new-checkout",
    "/ui/try",
    "/ui/config",
    "/ui/changes",
    "/ui/traffic",
    "/ui/nowhere",
)


@contextmanager
def desk(folder: Path, *flags: str, document: Any = DOCUMENT, ready: bool = True) -> Iterator[tuple[Proxy, str]]:
    """Run a proxy with a file as upstream, until its pages answer; gives it and the address of its pages."""
    (folder / "document.json").write_text(json.dumps(document))
    port = free_port()
    given = {"FLAGSVC_ADMIN_ADDRESS": f"127.0.0.1:{port}", "FLAGSVC_STORAGE": "none"}
    address = f"http://127.0.0.1:{port}"
    with our_proxy(f"file://{folder}/document.json", *flags, wait_ready=ready, **given) as proxy:
        proxy.program.wait(lambda: answers(f"{address}/ui/status"), "pages")
        yield proxy, address


def check_every_page(address: str, page: Browser, width: int) -> None:
    """Check that no page has a fault at this width, and that none takes more than five requests and its stream."""
    found = []
    for path in PAGES:
        found += faults_of(page, address + path, width)
        assert len({each for each in page.requested() if not each.endswith("/stream")}) <= 5
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("look", "width"), [("light", 320), pytest.param("dark", 1200, marks=pytest.mark.long)])
def test_every_page_in_a_browser(tmp_path: Path, look: str, width: int) -> None:
    """No page has a complaint, asks another host, runs a name as a script, breaks a rule of accessibility, or is too wide."""
    with desk(tmp_path) as (_, address), browser() as page:
        page.call("Emulation.setEmulatedMedia", features=LOOKS[look])
        check_every_page(address, page, width)


@pytest.mark.long
@pytest.mark.parametrize(("look", "width"), [("forced colours", 320), ("light", 768), ("dark", 360)])
def test_every_page_without_a_configuration_and_with_many_flags(tmp_path: Path, look: str, width: int) -> None:
    """The same for a proxy that has no configuration yet, and for one with 5,000 flags."""
    with browser() as page:
        page.call("Emulation.setEmulatedMedia", features=LOOKS[look])
        for features in (None, [{"name": f"flag-{number}", "enabled": True} for number in range(5000)]):
            document = "no document" if features is None else {"version": 2, "features": features}
            with desk(tmp_path, document=document, ready=features is not None) as (_, address):
                check_every_page(address, page, width)


def test_from_the_root_to_an_explanation(tmp_path: Path) -> None:
    """A person goes from the root by way of the list to a flag, tries a context, and reads why; the address has no context."""
    with desk(tmp_path) as (_, address), browser() as page:
        page.go(address)
        page.wait_for("document.querySelector('h2 .word') !== null && location.pathname === '/ui/status'")
        page.follow("nav a[href$='/flags']")
        page.run(
            "(s => { s.value = 'new'; s.dispatchEvent(new Event('input', {bubbles: true})) })(document.getElementById('search'))"
        )
        page.wait_for("document.querySelectorAll('#list tbody tr').length === 1")
        page.follow("#list tbody a")
        page.follow("main a.button")
        page.run("document.querySelector('[name=\"field.userId\"]').value = '7'")
        page.run("document.querySelector('main form button.main').click()")
        page.wait_for("document.getElementById('result') !== null")
        assert page.run("location.pathname + location.search + location.hash") == "/ui/try"
        assert "userId is 7" in page.run("document.getElementById('result').innerText")
        assert page.complaints() == []
        assert page.run("localStorage.length + sessionStorage.length + document.cookie.length") == 0


def test_a_new_revision_is_shown(tmp_path: Path) -> None:
    """Status and Changes follow a new document in place, and the numbers of Traffic follow requests. An opened part stays open."""
    with desk(tmp_path) as (proxy, address), browser() as page:
        page.go(f"{address}/ui/status")
        page.wait_for("typeof stream !== 'undefined' && stream?.readyState === EventSource.OPEN")
        page.run("window.mark = 1")
        document: Any = copy.deepcopy(DOCUMENT)
        del document["features"][2:]
        (tmp_path / "document.json").write_text(json.dumps(document))
        page.wait_for("[...document.querySelectorAll('#status dd')].some(each => each.innerText === '2')")
        assert page.run("window.mark") == 1
        page.go(f"{address}/ui/changes")
        page.wait_for("document.querySelectorAll('#list tbody tr').length >= 2")
        page.go(f"{address}/ui/traffic")
        page.run("window.mark = 1; document.getElementById('routes').open = true")
        page.wait_for("document.querySelector('#traffic svg') !== null")
        assert proxy.post("", {"toggles": ["everyone"], "context": {}}).status == 200
        page.wait_for("document.getElementById('routes').innerText.includes('POST')")
        page.wait_for("[...document.querySelectorAll('#numbers td')].some(each => parseFloat(each.textContent) > 0)")
        assert page.run("document.querySelectorAll('#numbers tbody tr').length") == 15
        assert page.run("window.mark") == 1 and page.run("document.getElementById('routes').open")
        assert page.complaints() == []


def test_with_workers(tmp_path: Path) -> None:
    """The parent has the snapshot, the state and the counts of all workers."""
    with desk(tmp_path, "--workers", "2") as (proxy, address):
        for _ in range(6):
            assert proxy.post("", {"toggles": ["everyone"], "context": {}}).status == 200

        def asked() -> object:
            return ask(f"{address}/ui/flags/everyone.json").json()["flag"]["asked"]

        wait_until(lambda: asked() == {"yes": 6, "no": 0})
        status = ask(f"{address}/ui/status.json").json()
        assert status["process"]["workers"]["running"] == 2
        [environment] = status["environments"]
        assert environment["state"] == "fresh" and environment["flags"] == 6 and environment["leftOut"]["number"] == 1
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = ask(f"{address}/ui/try.json", method="POST", headers=form, body=b"field.userId=7&flag=new-checkout")
        [explained] = answer.json()["result"]["explained"]
        assert explained["enabled"] is True and explained["strategy"] == 2
        options = {each["name"]: each for each in ask(f"{address}/ui/config.json").json()["options"]}
        assert options["workers"]["value"] == "2" and options["workers"]["source"] == "flag --workers"
