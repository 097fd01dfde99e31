"""`…/user/sessions`, `…/user-admin/:id/sessions` and `…/sign-in-link`: who may see and end sessions, and make links.

The options of signing in, as a server process takes them: their effects, and the refusals at the start.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from flagsvc.cli import main
from flagsvc.core.extras import install_command
from flagsvc.server.store.keyring import IDLE_S
from flagsvc.server.store.resources import sessions
from flagsvc.testing import FakeClock
from support.flagservers import ADMIN_SECRET, EDITOR_SECRET, USER_SECRET, VIEWER_SECRET, AppClient, our_flag_server
from support.page_forms import Visitor, pass_time
from support.processes import Answer, ask
from support.provider import CLIENT, SECRET, running_provider

OWN = "/api/admin/user/sessions"
USERS = "/api/admin/user-admin"
READER = 3
CLOCK = FakeClock


def listed(client: AppClient, path: str = OWN, token: str = USER_SECRET) -> list[dict[str, Any]]:
    """Return the sessions of a path."""
    return list(client.get(path, token=token).json()["sessions"])


def test_a_user_lists_and_ends_sessions(client: AppClient) -> None:
    """A session has its times and its way of signing in, and no secret; the newest comes first. Ended sessions open no page."""
    first, second = Visitor(client, VIEWER_SECRET), Visitor(client, None)
    made = client.post(f"{USERS}/{READER}/sign-in-link").json()
    assert second.sign_in(made["path"].partition("#")[2]).status == 303
    found = listed(client, token=VIEWER_SECRET)
    assert [each["tokenName"] for each in found] == [None, "reader"]
    assert not any(each["current"] for each in found) and all(each["seenAt"] for each in found)
    assert client.delete(f"{OWN}/{found[1]['id']}", token=VIEWER_SECRET).status == 200
    assert first.see("/flags").status == 303 and second.see("/flags").status == 200
    assert client.delete(OWN, token=VIEWER_SECRET).status == 200
    assert second.see("/flags").status == 303 and listed(client, token=VIEWER_SECRET) == []


def test_sessions_of_others(client: AppClient) -> None:
    """A user ends no session of another one; an administrator may, and no other token may look."""
    visitor = Visitor(client, VIEWER_SECRET)
    path = f"{USERS}/{READER}/sessions"
    [found] = listed(client, path)
    assert client.delete(f"{OWN}/{found['id']}").status == 404
    assert client.delete(f"{USERS}/1/sessions/{found['id']}").status == 404
    for token in (EDITOR_SECRET, VIEWER_SECRET):
        answers = [client.get(path, token=token), client.delete(path, token=token)]
        answers += [client.delete(f"{path}/{found['id']}", token=token)]
        answers += [client.post(f"{USERS}/{READER}/sign-in-link", token=token)]
        assert [each.status for each in answers] == [403] * 4
    assert visitor.see("/flags").status == 200
    assert client.delete(f"{path}/{found['id']}", token=ADMIN_SECRET).status == 200
    assert visitor.see("/flags").status == 303
    assert client.get(f"{USERS}/99/sessions").status == 404 and client.delete(f"{USERS}/99/sessions").status == 404


def test_an_admin_token_has_no_sessions(client: AppClient) -> None:
    """It is no user."""
    assert client.get(OWN, token=ADMIN_SECRET).status == 403 and client.delete(OWN, token=ADMIN_SECRET).status == 403


def test_ended_sessions_are_not_listed(client: AppClient, clock: FakeClock) -> None:
    """A session that was not used for long is gone, also before a cleanup."""
    Visitor(client)
    assert len(listed(client)) == 1
    pass_time(clock, IDLE_S + timedelta(minutes=6).total_seconds())
    assert listed(client) == []


def test_a_sign_in_link(client: AppClient, clock: FakeClock) -> None:
    """It signs its user in once, within 15 minutes; a later link voids it, and no cache keeps the answer."""
    path = f"{USERS}/{READER}/sign-in-link"
    answer = client.post(path)
    assert (answer.status, answer.headers["cache-control"]) == (201, "no-store")
    old, code = answer.json()["path"].partition("#")[2], client.post(path).json()["path"].partition("#")[2]
    assert Visitor(client, None).sign_in(old).status == 403
    visitor = Visitor(client, None)
    assert visitor.sign_in(code).status == 303 and "reader (viewer)" in visitor.see("/flags").text
    assert visitor.sign_in(code).status == 403
    late = client.post(path).json()["path"].partition("#")[2]
    pass_time(clock, sessions.LINK_TIME.total_seconds() + 1)
    assert Visitor(client, None).sign_in(late).status == 403
    assert client.post(f"{USERS}/99/sign-in-link").status == 404


def test_what_is_told(client: AppClient) -> None:
    """Links and ended sessions are events without a code; ending none is no event."""
    code = client.post(f"{USERS}/{READER}/sign-in-link").json()["path"].partition("#")[2]
    client.delete(f"{USERS}/{READER}/sessions")
    Visitor(client, VIEWER_SECRET)
    client.delete(f"{USERS}/{READER}/sessions")
    text = client.get("/api/admin/events").text
    found = client.get("/api/admin/events").json()["events"]
    assert [each["type"] for each in found] == ["user-sessions-ended", "user-link-created"]
    assert found[0]["before"]["sessions"] == 1 and found[0]["before"]["username"] == "reader"
    assert code not in text and code not in str(client.log.lines)


def test_names_of_users(client: AppClient) -> None:
    """Every user may read them, to give roles in a project."""
    found = client.get(f"{USERS}/access", token=VIEWER_SECRET).json()
    assert [each["username"] for each in found["users"]] == ["boss", "writer", "reader"]
    assert found["groups"] == [] and "rootRole" not in found["users"][0]


def see(url: str, **headers: str) -> Answer:
    """Get a page without following redirects."""
    return ask(url, headers={name.replace("_", "-"): value for name, value in headers.items()})


def cookie_of(answer: Answer) -> str:
    """Return the first cookie that an answer sets."""
    return answer.headers["set-cookie"].partition(";")[0]


def test_a_provider(tmp_path: Path) -> None:
    """Issuer, client, secret from a file, scopes, name, claim and groups have their effect, and the secret is in no output."""
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    given: dict[str, Any] = {"projects": [{"id": "shop", "name": "Shop"}]}
    with running_provider() as provider:
        env: dict[str, Any] = {
            "FLAGSVC_SERVER_PUBLIC_URL": "http://flags.example/base",
            "FLAGSVC_OIDC_ISSUER": f"{provider.issuer}/",
            "FLAGSVC_OIDC_CLIENT_ID": CLIENT,
            "FLAGSVC_OIDC_CLIENT_SECRET_FILE": str(tmp_path / "secret"),
            "FLAGSVC_OIDC_SCOPES": "email,groups",
            "FLAGSVC_OIDC_NAME": "Our company",
            "FLAGSVC_OIDC_GROUPS_CLAIM": "access.teams",
            "FLAGSVC_GROUP_ROLES": "cn=devs=editor,shop=owner:shop",
        }
        with our_flag_server("--log-level", "debug", base="/base", folder=tmp_path, given=given, **env) as server:
            assert "Sign in with Our company" in see(f"{server.root}/ui/sign-in").text
            away = see(f"{server.root}/ui/sign-in/provider?next=/try")
            query = parse_qs(urlsplit(away.headers["location"]).query)
            assert query["scope"] == ["openid email groups"]
            assert query["redirect_uri"] == ["http://flags.example/base/ui/sign-in/callback"]
            answer = provider.sign_in(away.headers["location"], access={"teams": ["cn=devs", "shop"]})
            back = see(f"{server.root}/ui/sign-in/callback?{answer}", cookie=cookie_of(away))
            assert (back.status, back.headers["location"]) == (303, "/base/ui/try")
            session = next(each for each in back.headers["set-cookie"].split("\n") if "attempt" not in each)
            page = see(f"{server.root}/ui/flags", cookie=session.partition(";")[0])
            assert page.status == 200 and "ada@flags.example (editor)" in page.text
            assert SECRET not in server.program.output()


def test_a_proxy_in_front(tmp_path: Path) -> None:
    """Header, networks and groups have their effect. Without the networks of this machine the header counts as absent."""
    env: dict[str, Any] = {
        "FLAGSVC_USER_HEADER": "X-User",
        "FLAGSVC_USER_GROUPS_HEADER": "X-Groups",
        "FLAGSVC_GROUP_ROLES": "devs=editor",
    }
    with our_flag_server(folder=tmp_path, FLAGSVC_USER_HEADER_FROM="loopback", **env) as server:
        away = see(f"{server.root}/ui/flags", x_user="ada", x_groups="devs")
        assert away.headers["location"] == "/ui/sign-in/header?next=%2Fflags"
        entered = see(f"{server.root}{away.headers['location']}", x_user="ada", x_groups="devs")
        page = see(f"{server.root}/ui/flags", x_user="ada", x_groups="devs", cookie=cookie_of(entered))
        assert page.status == 200 and "ada (editor)" in page.text
    with our_flag_server(folder=tmp_path, seeded=False, FLAGSVC_USER_HEADER_FROM="10.0.0.0/8", **env) as server:
        away = see(f"{server.root}/ui/flags", x_user="ada", x_groups="devs")
        assert away.headers["location"] == "/ui/sign-in?next=%2Fflags"


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--oidc-issuer", "https://id.example"), "oidcIssuer (flag --oidc-issuer): has no effect without oidcClientId"),
        (("--oidc-client-id", "a"), "oidcClientId (flag --oidc-client-id): has no effect without publicUrl"),
        (("--oidc-issuer", "http://id.example"), "http is for a provider on this machine (loopback) only"),
        (("--user-header", "X-User"), "userHeader (flag --user-header): has no effect without userHeaderFrom"),
        (("--user-header", "Cookie"), "`cookie` is reserved for another purpose"),
        (
            ("--user-header", "X-User", "--user-header-from", "loopback", "--user-groups-header", "x-user"),
            "userGroupsHeader (flag --user-groups-header): `x-user` names the person already, as userHeader",
        ),
        (("--user-header-from", "all"), "userHeaderFrom (flag --user-header-from): expected addresses, CIDRs"),
        (("--group-roles", "devs=boss"), "a role is admin, editor, viewer, owner:PROJECT or member:PROJECT"),
    ],
)
def test_what_is_refused_at_the_start(flags: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 2, and the sentence names the option and what was expected."""
    assert main(["server", *flags]) == 2
    assert problem in capsys.readouterr().err


def test_a_provider_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The start names the command that installs what is missing."""
    monkeypatch.setattr("flagsvc.core.extras.find_spec", lambda name: None if name == "joserfc" else object())
    monkeypatch.setenv("FLAGSVC_DATABASE_URL", str(tmp_path / "flags.db"))
    provider = ("--oidc-issuer", "https://id.example", "--oidc-client-id", "a", "--public-url", "https://flags.example")
    assert main(["server", "--port", "0", "--host", "127.0.0.1", *provider]) == 2
    assert install_command("oidc") in capsys.readouterr().err
