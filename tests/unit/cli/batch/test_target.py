"""The flag server and the token come from flags, variables and files. The token is never shown."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flagsvc.cli.batch.target import Target, add_target_arguments, read_target
from flagsvc.cli.parser import CommandParser, UsageError
from flagsvc.core.errors import ConfigurationError
from flagsvc.http.client.trust import Trust
from support.pki import Authority, written

URL = {"FLAGSVC_URL": "http://flags.example"}


def parsed(*arguments: str) -> Namespace:
    """Return parsed arguments."""
    parser = CommandParser(prog="flagsvc x")
    add_target_arguments(parser)
    found: Namespace = parser.parse_args(arguments)
    return found


def target(*arguments: str, env: Mapping[str, str] = URL) -> Target:
    """Return the target of arguments and environment."""
    return read_target(parsed(*arguments), env)


def trust(*arguments: str, env: Mapping[str, str] = URL) -> Trust:
    """Return the trust settings of arguments and environment."""
    found = target(*arguments, env=env).trust
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://flags.example", "http://flags.example"),
        ("http://flags.example/", "http://flags.example"),
        ("http://flags.example:4242/api", "http://flags.example:4242"),
        (" https://flags.example/api/ ", "https://flags.example"),
        ("http://flags.example/base/api/admin/", "http://flags.example/base"),
        ("http://flags.example/api/admin/features-batch", "http://flags.example"),
        ("http://flags.example/apis", "http://flags.example/apis"),
        ("http://u:p@flags.example/api?x=1#y", "http://flags.example"),
        ("http://[::1]:4242/api", "http://[::1]:4242"),
    ],
)
def test_addresses(given: str, address: str) -> None:
    """The URL comes from --url, FLAGSVC_URL or UNLEASH_URL, with or without /api. Its user and password are dropped."""
    assert target("--url", given, env={}).url == address
    assert target(env={"FLAGSVC_URL": given}).url == target(env={"UNLEASH_URL": given}).url == address
    assert target("--url", given, env={"FLAGSVC_URL": "http://other.example"}).url == address


@pytest.mark.parametrize("given", ["flags.example", "ftp://x", "file:///x", "http://", "http://x:99999", "http://a\x1bb"])
def test_what_is_no_address(given: str) -> None:
    """An invalid URL is one error that names --url."""
    with pytest.raises(ConfigurationError, match=r"--url: `.*` is not an http or https URL"):
        target("--url", given, env={})


def test_no_address() -> None:
    """The error names the option and the variable that set the URL."""
    with pytest.raises(ConfigurationError, match="the address of the flag server is missing: give --url or set FLAGSVC_URL"):
        target(env={})


def test_where_a_token_comes_from(tmp_path: Path) -> None:
    """A flag wins over a variable, and a variable over that of a file, which must be text. No repr shows the token."""
    path = tmp_path / "token"
    path.write_text("from-file\n")
    assert target().token == ""
    assert target(env=URL | {"FLAGSVC_ADMIN_TOKEN_FILE": str(path)}).token == "from-file"
    both = URL | {"FLAGSVC_ADMIN_TOKEN": "from-variable", "FLAGSVC_ADMIN_TOKEN_FILE": str(path)}
    assert target(env=both).token == "from-variable"
    assert target("--token-file", str(path), env=both).token == "from-file"
    found = target("--token", " from-flag ", env=both)
    assert found.token == "from-flag" and "from-flag" not in repr(found)
    (tmp_path / "t").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"--token-file: cannot read .*: not a text"):
        target("--token-file", str(tmp_path / "t"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--token", ""), "--token: holds no token"),
        (("--token", "s3cr\u2028et"), "--token: the token holds a character that no header can carry"),
        (("--token", "s3cr\u00e9t"), "--token: the token holds a character that no header can carry"),
        (("--token-file", "none"), "--token-file: cannot read `none`: no such file or directory"),
    ],
)
def test_tokens_that_are_none(arguments: tuple[str, ...], text: str) -> None:
    """Errors name the source of a token without showing the token."""
    with pytest.raises(ConfigurationError) as raised:
        target(*arguments)
    assert text in str(raised.value) and "s3cr" not in str(raised.value)


@pytest.mark.parametrize("text", ["0", "-1", "x", "nan", "1e9"])
def test_time_limits(text: str) -> None:
    """A time limit is a number of seconds up to a day."""
    with pytest.raises(UsageError, match="`--timeout`: expected a number of seconds up to 86400"):
        parsed(f"--timeout={text}")
    assert target("--timeout", "2.5").seconds == 2.5


def test_both_tokens() -> None:
    """--token and --token-file together are bad usage."""
    with pytest.raises(UsageError, match="`--token-file`: not allowed with argument --token"):
        parsed("--token", "a", "--token-file", "b")


def test_certificates(tmp_path: Path) -> None:
    """Certificates are verified unless --insecure or the proxy's variable disables it. A --ca-file must contain a certificate."""
    assert trust().reject_unauthorized
    assert not trust("--insecure").reject_unauthorized
    assert not trust(env=URL | {"HTTP_OPTIONS_REJECT_UNAUTHORIZED": "false"}).reject_unauthorized
    (tmp_path / "ca.pem").write_text("nothing")
    for path, reason in (
        (tmp_path / "none", "cannot read `.*`: no such file or directory"),
        (tmp_path / "ca.pem", "`.*` holds no certificate in PEM form"),
    ):
        with pytest.raises(ConfigurationError, match=f"--ca-file: {reason}"):
            trust("--ca-file", str(path)).check()


def test_outbound_proxies() -> None:
    """HTTP_PROXY and NO_PROXY apply as for the proxy. No repr shows a password in them."""
    env: dict[str, Any] = {"HTTP_PROXY": "http://u:s3cret@proxy.example:3128", "NO_PROXY": "inside.example"}
    outside, inside = target(env=URL | env), target("--url", "http://inside.example", env=env)
    assert outside.outbound.proxy_for(outside.url) == "http://u:s3cret@proxy.example:3128"
    assert inside.outbound.proxy_for(inside.url) is None
    assert "s3cret" not in repr(outside)
    with pytest.raises(ConfigurationError):
        target(env=URL | {"HTTP_OPTIONS_REJECT_UNAUTHORIZED": "perhaps"})


def test_what_the_proxy_trusts_and_shows(tmp_path: Path) -> None:
    """The proxy's variables for authorities and for a client certificate apply here too. No repr shows the password."""
    authority = Authority()
    mine = authority.issue()
    env = {
        "FLAGSVC_UPSTREAM_CA": written(tmp_path, "ca.pem", authority.pem),
        "FLAGSVC_UPSTREAM_CERT": written(tmp_path, "own.pem", mine.cert),
        "FLAGSVC_UPSTREAM_KEY": written(tmp_path, "key.pem", mine.locked("s3cret-word")),
        "FLAGSVC_UPSTREAM_KEY_PASSWORD": "s3cret-word",
    }
    found = target(env=URL | env)
    more = written(tmp_path, "more.pem", Authority().pem)
    assert len(trust(env=URL | env).context().get_ca_certs()) == len(trust().context().get_ca_certs()) + 1
    both = trust("--ca-file", more, env=URL | env)
    assert len(both.context().get_ca_certs()) == len(trust().context().get_ca_certs()) + 2
    assert "s3cret-word" not in repr(found)
    with pytest.raises(ConfigurationError, match="upstreamKeyPassword: does not decrypt the key"):
        trust(env=URL | env | {"FLAGSVC_UPSTREAM_KEY_PASSWORD": "other"}).check()
    with pytest.raises(ConfigurationError, match=r"upstreamKey .* has no effect without upstreamCert"):
        target(env=URL | {"FLAGSVC_UPSTREAM_KEY": "key.pem"})
