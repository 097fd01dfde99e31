"""Signing in in a real browser: the way to a provider and back breaks no policy, and the form no rule of accessibility."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support import processes
from support.browser import NAME, browser
from support.flagservers import USER_SECRET, our_flag_server
from support.page_faults import check_page, faults
from support.provider import CLIENT, SECRET, running_provider

pytestmark = pytest.mark.programs
OVER_HTTP = "Cross-Origin-Opener-Policy header has been ignored"
"""What the browser says about each page that comes over http."""
BUTTON = "[...document.querySelectorAll('a.button')].find(each => each.innerText === 'Sign in with Company account')"


def test_a_person_signs_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A click leads to the provider, and from there to the page that was asked for."""
    port = processes.free_port()
    monkeypatch.setattr(processes, "free_port", lambda: port)
    with running_provider() as provider:
        env: dict[str, Any] = {
            "FLAGSVC_SERVER_PUBLIC_URL": f"http://127.0.0.1:{port}",
            "FLAGSVC_OIDC_ISSUER": provider.issuer,
            "FLAGSVC_OIDC_CLIENT_ID": CLIENT,
            "FLAGSVC_OIDC_CLIENT_SECRET": SECRET,
            "FLAGSVC_OIDC_NAME": "Company account",
            "FLAGSVC_GROUP_ROLES": "devs=editor",
        }
        with our_flag_server(folder=tmp_path, **env) as server, browser() as page:
            page.go(f"{server.root}/ui/sessions")
            page.wait_for(f"{BUTTON} !== undefined")
            for width in (320, 1200):
                check_page(page, width)
            page.run(f"{BUTTON}.click()")
            page.wait_for("document.body?.innerText.includes('ada@flags.example (editor)')")
            assert page.run("location.pathname") == "/ui/sessions"
            assert page.complaints() == []


def test_a_session_over_http(tmp_path: Path) -> None:
    """Where browsers are to come over https, one that comes over http drops the cookie, and its page says so."""
    public = f"https://{NAME}"
    with our_flag_server(folder=tmp_path, FLAGSVC_SERVER_PUBLIC_URL=public) as server, browser() as page:
        for host, words in ((NAME, "because this page came over http"), ("127.0.0.1", "boss (admin)")):
            page.go(f"{server.root.replace('127.0.0.1', host)}/ui/sessions")
            page.run(f"document.getElementById('token').value = '{USER_SECRET}'")
            page.follow("main form button")
            assert words in page.run("document.body.innerText")
            assert [each for each in faults(page, 1200) if OVER_HTTP not in each] == []
        assert page.run("location.pathname") == "/ui/sessions", "loopback counts as https"
