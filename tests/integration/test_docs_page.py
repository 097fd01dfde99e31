"""The interactive page in a real browser (specification: GET /docs/openapi): it works, and nothing comes from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from flagsvc.proxy.api.dialects import ROUTES
from fuzzing.proxy import DOCUMENT
from support.browser import Browser, browser
from support.processes import KEY, Proxy, our_proxy

OPERATIONS = "document.querySelectorAll('.opblock')"
FILL = """(selector, text) => {
  const box = document.querySelector(selector);
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(box), "value").set.call(box, text);
  for (const event of ["input", "change", "focusout"]) box.dispatchEvent(new Event(event, {bubbles: true}));
}"""
ANSWERED = "document.querySelector('{} .live-responses-table tr.response .response-col_status')"


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    """A browser."""
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def proxy(page: Browser) -> Iterator[Proxy]:
    """A proxy with the page switched on, below a base path."""
    with our_proxy(DOCUMENT.as_uri(), ENABLE_OAS="true", FLAGSVC_OFREP="true", PROXY_BASE_PATH="some/base") as running:
        yield running


@pytest.fixture
def shown(page: Browser, proxy: Proxy) -> Iterator[Browser]:
    """The page as soon as its operations are there; in the end it must not have complained, nor looked elsewhere."""
    page.go(address(proxy))
    page.wait_for(f"{OPERATIONS}.length")
    yield page
    assert page.complaints() == []
    asked = [urlsplit(url) for url in page.requested()]
    assert {url.netloc for url in asked if url.scheme != "data"} == {f"127.0.0.1:{proxy.port}"}
    assert {url.scheme for url in asked} <= {"http", "data"}


def address(proxy: Proxy, end: str = "") -> str:
    """Return the address of a proxy's page."""
    return proxy.url.removesuffix("/proxy") + f"/docs/openapi{end}"


def click(page: Browser, selector: str) -> None:
    """Click on something as soon as it is there."""
    page.wait_for(f"document.querySelector({json.dumps(selector)}) !== null")
    page.run(f"document.querySelector({json.dumps(selector)}).click()")


def fill(page: Browser, selector: str, text: str) -> None:
    """Write into a field as soon as it is there."""
    page.wait_for(f"document.querySelector({json.dumps(selector)}) !== null")
    page.run(f"({FILL})({json.dumps(selector)}, {json.dumps(text)})")


def executed(page: Browser, operation: str, **fields: str) -> tuple[int, Any]:
    """Try an operation out with these parameters, and return the status and the body that the page shows."""
    block = f"#operations-{operation}"
    click(page, f"{block} .opblock-summary-control")
    click(page, f"{block} .try-out__btn")
    for name, text in fields.items():
        fill(page, f"{block} tr[data-param-name={name}] :is(input, textarea)", text)
    click(page, f"{block} .execute")
    status = page.wait_for(f"{ANSWERED.format(block)}?.innerText")
    return int(status.split()[0]), page.run(
        f"document.querySelector('{block} .live-responses-table tr.response .response-col_description').innerText"
    )


def authorize(page: Browser, key: str) -> None:
    """Give the page a client key."""
    click(page, ".auth-wrapper .authorize")
    fill(page, ".dialog-ux input", key)
    click(page, ".dialog-ux .auth-btn-wrapper .authorize")
    page.wait_for("document.querySelector('.dialog-ux .auth-btn-wrapper').innerText.includes('Logout')")
    click(page, ".dialog-ux .btn-done")


def test_every_operation_is_shown(shown: Browser, proxy: Proxy) -> None:
    """One block for each documented row, with its method and path."""
    method, path = "querySelector('.opblock-summary-method').innerText", "querySelector('[data-path]').dataset.path"
    script = f"[...{OPERATIONS}].map(each => each.{method} + ' ' + each.{path})"
    base = urlsplit(proxy.url).path.removesuffix("/proxy")
    assert sorted(shown.run(script)) == sorted(f"{row.method} {row.place(base)}" for row in ROUTES if row.listed)
    assert "flagsvc proxy" in shown.run("document.querySelector('.info .title').innerText")


def test_the_page_has_styles(shown: Browser) -> None:
    """The bundle's style sheet is in effect, and ours."""
    assert shown.run("getComputedStyle(document.querySelector('.opblock-get')).borderTopColor") != "rgb(0, 0, 0)"
    assert shown.run("getComputedStyle(document.body).margin") == "0px"
    assert shown.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_flags_can_be_tried_out(shown: Browser) -> None:
    """With a key and a context, the page shows the flags that are on; also with its example body."""
    authorize(shown, KEY)
    status, body = executed(shown, "evaluation-get_proxy", userId="7", properties='{"plan": "premium"}')
    assert status == 200
    assert '"name": "dark-mode"' in body
    last = shown.requested()[-1]
    assert "userId=7" in last and "properties%5Bplan%5D=premium" in last
    assert executed(shown, "evaluation-post_proxy")[0] == 200
    assert executed(shown, "clients-post_proxy_client_metrics")[0] == 200
    assert executed(shown, "clients-post_proxy_client_register")[0] == 200


def test_without_a_key(page: Browser, proxy: Proxy) -> None:
    """Without a key the page shows the 401, and the browser reports only that."""
    page.go(address(proxy))
    page.wait_for(f"{OPERATIONS}.length")
    assert executed(page, "evaluation-get_proxy")[0] == 401
    assert page.requested()[-1] == proxy.url  # the form begins empty
    assert [line for line in page.complaints() if "401 (Unauthorized)" not in line] == []


def test_complaints_are_found(page: Browser, proxy: Proxy) -> None:
    """The other tests would notice a foreign script, an inline one, and an error."""
    page.go(address(proxy))
    page.wait_for(f"{OPERATIONS}.length")
    page.run(
        """{ const add = (script) => document.body.append(Object.assign(document.createElement("script"), script));
        add({src: "https://cdn.example/x.js"}); add({textContent: "window.inline = 1"});
        setTimeout(() => { throw new Error("thrown on purpose") }); undefined }"""
    )
    page.wait(lambda: len(page.complaints()) >= 3, "three complaints")
    found = " ".join(page.complaints())
    assert "cdn.example" in found and "inline script" in found and "thrown on purpose" in found
    assert page.run("window.inline") is None
