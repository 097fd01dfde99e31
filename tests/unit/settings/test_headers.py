"""Which headers may carry keys, and which may name a user.

What a token says of itself.
"""

from __future__ import annotations

import pytest

from flagsvc.settings import headers
from flagsvc.settings.kinds import RefusedError
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS
from flagsvc.settings.tokens import NamedScope, read_scope

FRAMING = (
    *("connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate", "proxy-authorization"),
    *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
)
FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
READ = (
    *("accept", "accept-encoding", "access-control-request-headers", "access-control-request-method", "cookie"),
    *("content-encoding", "content-type", "if-none-match", "origin", "referer", "sec-fetch-site", "set-cookie"),
    *("unleash-appname", "unleash-instanceid", "unleash-sdk", "user-agent"),
)
OF_KEYS = ("authorization", "x-api-key", "apikey", "x-client-key", "x-unleash-token", "x-forwarded-access-token")


@pytest.mark.parametrize("name", [*FRAMING, *FORWARDED, *READ])
@pytest.mark.parametrize("kind", ["KEY_HEADER", "UPSTREAM_NAME", "USER_HEADER"])
def test_headers_that_carry_no_key(kind: str, name: str) -> None:
    """Headers that frame a request, belong to a connection, or have another meaning carry no key and name no user."""
    parse = getattr(headers, kind).parse
    for spelling in (name, name.upper()):
        with pytest.raises(RefusedError, match=f"^`{name}` is reserved for another purpose$"):
            parse(spelling)
    assert parse(f"X-{name}") == f"x-{name}"


@pytest.mark.parametrize("name", OF_KEYS)
def test_headers_that_carry_keys(name: str) -> None:
    """The names that gateways and SDKs use for keys stay, for callers and for the upstream."""
    for kind in (headers.KEY_HEADER, headers.UPSTREAM_NAME):
        assert kind.parse(name.title()) == name


def test_the_options_of_both_programs_refuse_cookie() -> None:
    """Every option that takes the name of one header of requests refuses `Cookie`, so none is missed."""
    kinds = {each.kind for each in (*OPTIONS, *SERVER_OPTIONS) if each.name.endswith(("Header", "HeaderName"))}
    assert kinds == {headers.KEY_HEADER, headers.UPSTREAM_NAME, headers.USER_HEADER, headers.ANSWER_HEADER}
    for kind in kinds - {headers.ANSWER_HEADER}:
        with pytest.raises(RefusedError):
            kind.parse("Cookie")


def test_headers_that_name_a_user() -> None:
    """The headers of authenticating proxies name a user; the header of a caller's own key does not."""
    for name in ("X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Groups", "X-Auth-Request-User", "Remote-User"):
        assert headers.USER_HEADER.parse(name) == name.lower()
    with pytest.raises(RefusedError, match=r"^`authorization` is reserved for another purpose$"):
        headers.USER_HEADER.parse("Authorization")


@pytest.mark.parametrize(
    ("token", "named"),
    [
        ("shop:production.secret", NamedScope("shop", "production")),
        ("a.b:production.secret", NamedScope("a.b", "production")),
        ("*:production.s.ecret:x", NamedScope("*", "production")),
        ("[]:production.se:cret", NamedScope("[]", "production")),
        ("*:*.secret", NamedScope("*", "*")),
        *((token, None) for token in ("", "secret", "a:production", "a:production.", "a:.secret", ":.")),
        *((token, None) for token in (":production.secret", "production.secret")),
    ],
)
def test_what_a_token_names(token: str, named: NamedScope | None) -> None:
    """A token of the usual form names a project, which may contain a dot, and an environment; any other form names nothing.

    The token begins with the part that is not secret.
    """
    assert read_scope(token) == named
    assert named is None or (token.startswith(named.prefix) and "cret" not in named.prefix)
