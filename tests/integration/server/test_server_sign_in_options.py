"""The options of signing in, as a server process takes them: what each one does, and what is refused at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from flagsvc.cli import main
from support.flagservers import our_flag_server
from support.processes import Answer, ask
from support.provider import CLIENT, SECRET, running_provider


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
        (
            ("--oidc-issuer", "https://id.example"),
            "oidcIssuer (flag --oidc-issuer): has no effect without oidcClientId",
        ),
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


def test_a_provider_without_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The start names the command that installs what is missing."""
    monkeypatch.setattr("flagsvc.core.extras.find_spec", lambda name: None if name == "joserfc" else object())
    monkeypatch.setenv("FLAGSVC_DATABASE_URL", str(tmp_path / "flags.db"))
    provider = ("--oidc-issuer", "https://id.example", "--oidc-client-id", "a", "--public-url", "https://flags.example")
    assert main(["server", "--port", "0", "--host", "127.0.0.1", *provider]) == 2
    assert "pip install '.[oidc]'" in capsys.readouterr().err
