"""Parsing and display of URLs, addresses and origins."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flagsvc.settings import network as net
from flagsvc.settings.kinds import RefusedError
from flagsvc.settings.load import resolve
from flagsvc.settings.server import resolve_server

LONGEST = f"unix:/{'x' * 99}"


def same(*values: object) -> dict[object, object]:
    """Return rows of values that are kept as they are."""
    return {value: value for value in values}


def to(*rows: str) -> dict[object, object]:
    """Return rows of texts that become other texts: `text → other text`."""
    return {text: other for text, _, other in (row.partition(" → ") for row in rows)}


TAKEN: dict[Callable[[Any], object], dict[Any, object]] = {
    # an http or https API, or a document in a file
    net.parse_base_url: {
        **same("http://localhost:4242/api", "HTTPS://Example.com", "http://[::1]:80/x", "http://u:p@h"),
        **same("file:///etc/flags.json", "file:///with%20blank"),
        **to("http://localhost:4242/api/ → http://localhost:4242/api", "file:/etc/flags.json → file:///etc/flags.json"),
        **to("FILE://localhost/a.json → file:///a.json", "file:///with blank → file:///with%20blank"),
        "file:///a/../b": "file:///b",
    },
    # the URL of a bootstrap may have a query, because nothing is appended to it
    net.parse_url: {"https://cdn/flags.json?sig=abc": "https://cdn/flags.json?sig=abc"},
    # http or https, without a slash at the end
    net.WEB_URL.parse: {
        **same("https://flags.example"),
        **to("http://[::1]:4242/base/ → http://[::1]:4242/base", " https://flags.example/  → https://flags.example"),
    },
    # a URL, or a host and a port as in curl
    net.parse_outbound_proxy: {
        **same("http://p:3128"),
        **to("https://p/ → https://p", "p:3128 → http://p:3128", "u:w@p:3128 → http://u:w@p:3128"),
    },
    # a name or an address, in brackets or not; an absolute path is a Unix socket
    net.parse_host: {
        **same("127.0.0.1", "0.0.0.0", "::", "fe80::1%eth0", "localhost", "web-1.internal", "unix.example"),
        **same("unix:/run/p.sock", LONGEST),
        **to("[::] → ::", "0:0:0:0:0:0:0:0 → ::", "::0.0.0.0 → ::", "[::1] → ::1"),
        **to("unix:///run/p.sock → unix:/run/p.sock", "/run/p.sock → unix:/run/p.sock"),
    },
    # a host and a port, only a port, or a Unix socket
    net.parse_address: {
        **same("127.0.0.1:9090", ":9090", "[::1]:0", "unix:/run/a.sock"),
        **to("admin.example: 80 → admin.example:80", "UNIX:///run/a.sock → unix:/run/a.sock"),
        "/run/a.sock": "unix:/run/a.sock",
    },
    # a leading slash, and none behind
    net.parse_base_path: to("base/path → /base/path", "/base/path/ → /base/path", "//a//b// → /a/b", "/ → ", "a → /a"),
    # three octal digits, with or without a leading 0
    net.parse_mode: {"660": "0660", " 0660 ": "0660"},
    # booleans, addresses, CIDRs and names, alone or in a list (behaviour: Remote address)
    net.parse_trust: {
        True: True,
        False: False,
        "true": True,
        "TRUE": True,
        "no": False,
        "0": False,
        "127.0.0.1": ("127.0.0.1",),
        "127.0.0.1,192.168.1.1/24": ("127.0.0.1", "192.168.1.0/24"),
        "10.0.0.0/255.0.0.0": ("10.0.0.0/8",),
        "Loopback, linklocal, uniquelocal": ("loopback", "linklocal", "uniquelocal"),
        "::1": ("::1",),
        "2001:db8::/32": ("2001:db8::/32",),
        "::ffff:10.1.2.3": ("10.1.2.3",),
        "::ffff:10.0.0.0/104": ("10.0.0.0/8",),
        "::ffff:0:0/90": ("::ffc0:0:0/90",),
        "10.0.0.0/32, 10.0.0.0": ("10.0.0.0",),
        ("loopback", "10.0.0.1"): ("loopback", "10.0.0.1"),
        (): (),
    },
    # one origin stays a text, a list stays a list, and a pattern becomes a list (behaviour: CORS)
    net.parse_origin: {
        "*": "*",
        "https://a.com,*": "*",
        **same("https://a.com", "capacitor://localhost", "http://[::1]:3000", ("https://a.com", "null"), ()),
        "HTTPS://A.com:8443/": "https://a.com:8443",
        "https://a.com,": ("https://a.com",),
        ("https://a.com",): ("https://a.com",),
        "https://*.example.com": ("https://*.example.com",),
        "http://localhost:*": ("http://localhost:*",),
    },
    # an exclamation mark leaves a network out
    net.REACH.parse: {
        "10.1.2.3/8": ("10.0.0.0/8",),
        "! LinkLocal, !metadata": ("!linklocal", "!metadata"),
        ("!::ffff:10.0.0.1", "loopback"): ("!10.0.0.1", "loopback"),
    },
}
REFUSED: dict[Callable[[Any], object], tuple[object, ...]] = {
    net.parse_base_url: (
        *("localhost:4242/api", "ftp://h", "http://", "http:///x", "http://h:port", "http://h:99999", "http://[::1"),
        *("http://h/a b", "file://relative/path", "file://only-a-host", "file:", "file:%00", "*:development.token"),
        *("http://h/api?x=1", "http://h/api#x", 5, None),
    ),
    net.WEB_URL.parse: ("flags.example", "file:/x", "https://a@flags.example", "https://x?a=1", "https://x#a"),
    net.parse_outbound_proxy: ("socks5://p:1080", "http://", "http://p:x", "a b", 5),
    net.parse_host: (
        *("1.2.3", "256.1.1.1", "::1::", "a b", "http://h", "-x", "h/x", "a" * 254, 5, "::\udcff"),
        *("unix:run/p.sock", "unix:", "unix:/run/", f"{LONGEST}x"),
    ),
    # without brackets the end of an IPv6 address is not clear
    net.parse_address: ("9090", "host", "::1:80", "[::1]", "host:", "host:x", "host:70000", "a b:1", 9090, ":-1"),
    net.parse_base_path: ("a b", "a?b", "a#b", "ä", 5, "https://flags.example.com/x", "/http://h"),
    # a number is ambiguous
    net.parse_mode: ("1660", "66", "888", "rw-rw----", 660, 0o660),
    # a number of hops, a host name, and booleans in a list: each could trust the wrong caller
    net.parse_trust: ("1", "2", "true,10.0.0.1", "10.0.0.0/99", "example.com", "fe80::1%eth0", 5, [True], None),
    net.parse_origin: (
        *("example.com", "https://a.com/path", "https://", "true", "https://a b", "https://a@b", 5, [5]),
        "https://a.com:x",
    ),
    net.REACH.parse: ("!", "!!linklocal", "nowhere", "!metadata.example", "300.0.0.1", 5),
}
SHOWN: dict[Callable[[Any], object], dict[Any, object]] = {
    # user, password and query are masked
    net.safe_url: {
        **same(None, "", "http://h:1/api", "none"),
        **to("http://user:pass@h:1/api → http://***@h:1/api", "https://h/x?sig=abc → https://h/x?***"),
        "http://u:/pass@h": "http://***@h",
    },
    # a text without a scheme may be a token, so it is not quoted at all
    net.echo_url: {
        "http://user:pa/ss@word@h:port": "`http://***@h:port`",
        "socks5://h:1": "`socks5://h:1`",
        "ftp://h/x?sig=abc": "`ftp://h/x?***`",
        "*:development.token": None,
        "localhost:4242/api": None,
        "": None,
    },
    net.ORIGINS.show: {
        "*": "*",
        "https://a": "https://a",
        ("https://a",): "https://a",
        ("https://a", "null"): "https://a, null",
        ("https://*.a",): "https://*.a",
    },
    # a host, None for all addresses, and a port
    net.split_address: {
        "127.0.0.1:9090": ("127.0.0.1", 9090),
        ":9090": (None, 9090),
        "[::1]:0": ("::1", 0),
        "unix:/run/a.sock": ("unix:/run/a.sock", 0),
    },
}


@pytest.mark.parametrize(("parse", "given", "kept"), [(parse, *row) for parse in TAKEN for row in TAKEN[parse].items()])
def test_what_is_taken(parse: Callable[[Any], object], given: object, kept: object) -> None:
    """Each parser reads these values, and reads its own results unchanged. A list may be a list or a tuple."""
    assert parse(given) == kept == parse(kept)
    assert not isinstance(given, tuple) or parse([*given]) == kept


@pytest.mark.parametrize(("parse", "given"), [(parse, value) for parse, values in REFUSED.items() for value in values])
def test_what_is_refused(parse: Callable[[Any], object], given: object) -> None:
    """Each parser refuses these values."""
    with pytest.raises(RefusedError):
        parse(given)


@pytest.mark.parametrize(("show", "value", "text"), [(show, *row) for show in SHOWN for row in SHOWN[show].items()])
def test_what_is_shown(show: Callable[[Any], object], value: object, text: object) -> None:
    """A value, or a refused text, is shown without secrets."""
    assert show(value) == text


def test_a_relative_file_url_starts_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`file:flags.json` is the full path of that file in the working directory. It is refused if that no longer exists."""
    monkeypatch.chdir(tmp_path)
    assert net.parse_url("file:flags.json") == (tmp_path / "flags.json").as_uri()
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(RefusedError, match="working directory"):
        net.parse_url("file:flags.json")


def test_a_url_as_base_path_says_what_is_expected() -> None:
    """Both programs refuse a whole URL as base path. The problem shows no password of it, and what to give."""
    url = "https://me:hunter2@flags.example.com/x"
    for problems in (
        resolve({"PROXY_BASE_PATH": url}, None, {}).problems,
        resolve_server({"BASE_URI_PATH": url}, None, {}).problems,
        resolve_server({}, None, {"basePath": url}).problems,
    ):
        (text,) = [each for name, each in problems.items() if name in ("basePath", "proxyBasePath")]
        assert "expected a path such as /base/path, got `https://***@flags.example.com/x`; a whole URL is no path" in text


@pytest.mark.parametrize(
    ("parse", "given", "hint"),
    [
        (net.parse_host, "unix:run/p.sock", "whole path"),
        (net.parse_host, f"{LONGEST}x", "at most 100 bytes"),
        # 1 may mean one hop or true
        (net.parse_trust, "1", "write `true`"),
        # the name is for webhooks only
        (net.NETWORKS.parse, "metadata", "neither an address nor a CIDR"),
    ],
)
def test_a_refusal_says_why(parse: Callable[[Any], object], given: str, hint: str) -> None:
    """The hint tells what is expected."""
    with pytest.raises(RefusedError, match=hint):
        parse(given)


def test_names_of_networks_stand_for_networks() -> None:
    """Each name stands for valid networks, and addresses are kept."""
    networks = net.trusted_networks(("loopback", "linklocal", "uniquelocal", "10.0.0.1"))
    assert [str(ipaddress.ip_network(each)) for each in networks][:-1] == list(networks[:-1])
    assert ipaddress.ip_address("127.1.2.3") in ipaddress.ip_network(networks[0])
    assert networks[-1] == "10.0.0.1"


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
