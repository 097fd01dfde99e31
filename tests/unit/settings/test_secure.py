"""Options that have no effect without another one, addresses to listen on, Unix sockets and their mode."""

from __future__ import annotations

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.settings import network as net
from flagsvc.settings.kinds import RefusedError
from flagsvc.settings.load import load, resolve
from flagsvc.settings.options import OPTIONS, ProxyOptions
from flagsvc.settings.server import load_server
from flagsvc.settings.table import BY_NAME
from support.settings_samples import BASE

ALONE = [option.name for option in OPTIONS if option.needs]


@pytest.mark.parametrize("name", ALONE)
def test_an_option_without_the_one_it_needs(name: str) -> None:
    """An option without the one that it needs is refused."""
    variable = BY_NAME[name].reads[0]
    with pytest.raises(ConfigurationError) as caught:
        load(BASE | {variable: "/some/file"}, None, {})
    told = f"{name} (environment {variable}): has no effect without {BY_NAME[name].needs}; give both, or neither"
    assert caught.value.problems == (told,)
    with pytest.raises(ConfigurationError, match=f"{BY_NAME[name].field}: has no effect without "):
        ProxyOptions(
            flagsvc_url="http://h/api",
            flagsvc_api_token="t",
            client_keys="k",
            **{BY_NAME[name].field: "/some/file"},  # type: ignore[arg-type]
        )


def test_what_is_wrong_anyway_is_told_once() -> None:
    """If the needed option was given but refused, there is only one problem. A blank option needs no other."""
    wrong = BASE | {"FLAGSVC_TLS_CERT": "\x01", "FLAGSVC_TLS_KEY": "/key", "FLAGSVC_UPSTREAM_KEY": "\x01"}
    assert set(resolve(wrong, None, {}).problems) == {"tlsCert", "upstreamKey"}
    assert not resolve(BASE | {"FLAGSVC_TLS_KEY": " "}, None, {}).problems


def test_the_flag_server_says_so_as_well() -> None:
    """The flag server refuses such an option too."""
    with pytest.raises(ConfigurationError) as caught:
        load_server({"HOME": "/h"}, {"tlsClientCa": "/ca.pem"})
    assert caught.value.problems == (
        "tlsClientCa (flag --tls-client-ca): has no effect without tlsCert; give both, or neither",
    )


@pytest.mark.parametrize(
    ("text", "kept", "parts"),
    [
        ("127.0.0.1:9090", "127.0.0.1:9090", ("127.0.0.1", 9090)),
        (":9090", ":9090", (None, 9090)),
        ("[::1]:0", "[::1]:0", ("::1", 0)),
        ("admin.example: 80", "admin.example:80", ("admin.example", 80)),
        ("UNIX:///run/a.sock", "unix:/run/a.sock", ("unix:/run/a.sock", 0)),
        ("unix:/run/a.sock", "unix:/run/a.sock", ("unix:/run/a.sock", 0)),
    ],
)
def test_addresses(text: str, kept: str, parts: tuple[str | None, int]) -> None:
    """An address is a host and a port, only a port, or a Unix socket."""
    assert net.parse_address(text) == kept == net.parse_address(kept)
    assert net.split_address(kept) == parts


@pytest.mark.parametrize(
    "text", ["9090", "host", "::1:80", "[::1]", "host:", "host:x", "host:70000", "a b:1", 9090, ":-1"]
)
def test_no_addresses(text: object) -> None:
    """Anything else is refused: without brackets the end of an IPv6 address is not clear."""
    with pytest.raises(RefusedError):
        net.parse_address(text)


def test_hosts_may_be_unix_sockets() -> None:
    """A host may be a Unix socket with an absolute path of at most 100 bytes."""
    assert net.parse_host("unix:/run/p.sock") == net.parse_host("unix:///run/p.sock") == "unix:/run/p.sock"
    assert net.parse_host("unix.example") == "unix.example"
    longest = "unix:/" + "x" * 99
    assert net.parse_host(longest) == longest
    for text, hint in (("unix:run/p.sock", "whole path"), ("unix:", "whole path"), ("unix:/run/", "whole path")):
        with pytest.raises(RefusedError, match=hint):
            net.parse_host(text)
    with pytest.raises(RefusedError, match="at most 100 bytes"):
        net.parse_host(f"{longest}x")


@pytest.mark.parametrize(
    ("host", "path", "url"),
    [
        ("h", None, "http://h:80/x"),
        ("::1", None, "http://[::1]:80/x"),
        ("unix:/run/a.sock", "/run/a.sock", "http://unix:/run/a.sock:/x"),
    ],
)
def test_urls_of_hosts(host: str, path: str | None, url: str) -> None:
    """The URL of a host has a port. The URL of a Unix socket has the form that nginx uses."""
    assert net.socket_path(host) == path
    assert net.url_at(host, 80, "/x", tls=False) == url
    assert net.url_at(host, 80, "/x", tls=True) == url.replace("http:", "https:")


def test_modes() -> None:
    """A mode is a text of three octal digits, with or without a leading 0. A number is refused as ambiguous."""
    assert net.parse_mode("660") == net.parse_mode(" 0660 ") == "0660"
    for wrong in ("1660", "66", "888", "rw-rw----", 660, 0o660):
        with pytest.raises(RefusedError):
            net.parse_mode(wrong)
