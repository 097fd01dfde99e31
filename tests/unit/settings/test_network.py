"""Parsing and display of URLs, addresses and origins."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from flagsvc.settings import network as net
from flagsvc.settings.kinds import RefusedError
from flagsvc.settings.load import resolve
from flagsvc.settings.server import resolve_server


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("http://localhost:4242/api", "http://localhost:4242/api"),
        ("http://localhost:4242/api/", "http://localhost:4242/api"),
        ("HTTPS://Example.com", "HTTPS://Example.com"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
        ("http://u:p@h", "http://u:p@h"),
        ("file:///etc/flags.json", "file:///etc/flags.json"),
        ("file:/etc/flags.json", "file:///etc/flags.json"),
        ("FILE://localhost/etc/flags.json", "file:///etc/flags.json"),
        ("file:///with%20blank", "file:///with%20blank"),
        ("file:///with blank", "file:///with%20blank"),
        ("file:///a/../b", "file:///b"),
    ],
)
def test_base_urls(value: str, expected: str) -> None:
    """The upstream is an http or https API, or a document in a file."""
    assert net.parse_base_url(value) == expected
    assert net.parse_base_url(expected) == expected


def test_a_relative_file_url_starts_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`file:flags.json` is read as the full path of that file in the working directory."""
    monkeypatch.chdir(tmp_path)
    url = net.parse_url("file:flags.json")
    assert url == (tmp_path / "flags.json").as_uri()


def test_a_relative_file_url_without_a_working_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A relative path is refused if the working directory no longer exists."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(RefusedError, match="working directory"):
        net.parse_url("file:flags.json")


@pytest.mark.parametrize(
    "value",
    [
        "localhost:4242/api",
        "ftp://h",
        "http://",
        "http:///x",
        "http://h:port",
        "http://h:99999",
        "http://[::1",
        "http://h/a b",
        "file://relative/path",
        "file://only-a-host",
        "file:",
        "file:%00",
        "*:development.token",
        "http://h/api?x=1",
        "http://h/api#x",
        5,
        None,
    ],
)
def test_no_base_urls(value: object) -> None:
    """Anything else is refused."""
    with pytest.raises(RefusedError):
        net.parse_base_url(value)


def test_a_bootstrap_url_may_carry_a_signature() -> None:
    """The URL of a bootstrap may have a query, because nothing is appended to it."""
    assert net.parse_url("https://cdn/flags.json?sig=abc") == "https://cdn/flags.json?sig=abc"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (None, None),
        ("", ""),
        ("http://h:1/api", "http://h:1/api"),
        ("http://user:pass@h:1/api", "http://***@h:1/api"),
        ("https://h/x?sig=abc", "https://h/x?***"),
        ("http://u:/pass@h", "http://***@h"),
        ("none", "none"),
    ],
)
def test_urls_are_shown_without_credentials(url: str | None, shown: str | None) -> None:
    """User, password and query are masked. The rest is shown."""
    assert net.safe_url(url) == shown


@pytest.mark.parametrize(
    ("text", "echo"),
    [
        ("http://user:pa/ss@word@h:port", "`http://***@h:port`"),
        ("socks5://h:1", "`socks5://h:1`"),
        ("ftp://h/x?sig=abc", "`ftp://h/x?***`"),
        ("*:development.token", None),
        ("localhost:4242/api", None),
        ("", None),
    ],
)
def test_refused_urls_are_quoted_with_care(text: str, echo: str | None) -> None:
    """A text without a scheme may be a token, so it is not quoted at all."""
    assert net.echo_url(text) == echo


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("http://p:3128", "http://p:3128"),
        ("https://p/", "https://p"),
        ("p:3128", "http://p:3128"),
        ("u:w@p:3128", "http://u:w@p:3128"),
    ],
)
def test_outbound_proxies(value: str, expected: str) -> None:
    """An outbound proxy is a URL, or a host and a port as in curl."""
    assert net.parse_outbound_proxy(value) == expected
    assert net.parse_outbound_proxy(expected) == expected


@pytest.mark.parametrize("value", ["socks5://p:1080", "http://", "http://p:x", "a b", 5])
def test_no_outbound_proxies(value: object) -> None:
    """Other schemes and invalid addresses are refused."""
    with pytest.raises(RefusedError):
        net.parse_outbound_proxy(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "0.0.0.0"),
        ("::", "::"),
        ("[::]", "::"),
        ("0:0:0:0:0:0:0:0", "::"),
        ("::0.0.0.0", "::"),
        ("[::1]", "::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("localhost", "localhost"),
        ("web-1.internal", "web-1.internal"),
    ],
)
def test_hosts(value: str, expected: str) -> None:
    """A host is a name or an address, in brackets or not."""
    assert net.parse_host(value) == expected


@pytest.mark.parametrize(
    "value", ["1.2.3", "256.1.1.1", "::1::", "a b", "http://h", "-x", "h/x", "a" * 254, 5, "::\udcff"]
)
def test_no_hosts(value: object) -> None:
    """A value that is neither a host name nor an address is refused."""
    with pytest.raises(RefusedError):
        net.parse_host(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("base/path", "/base/path"), ("/base/path/", "/base/path"), ("//a//b//", "/a/b"), ("/", ""), ("a", "/a")],
)
def test_base_paths(value: str, expected: str) -> None:
    """The base path gets a leading slash and loses the trailing one."""
    assert net.parse_base_path(value) == expected


@pytest.mark.parametrize("value", ["a b", "a?b", "a#b", "ä", 5, "https://flags.example.com/x", "/http://h"])
def test_no_base_paths(value: object) -> None:
    """Characters that are invalid in the path of a URL are refused, and so is a whole URL."""
    with pytest.raises(RefusedError):
        net.parse_base_path(value)


def test_a_url_as_base_path_says_what_is_expected() -> None:
    """Both programs refuse a whole URL as base path. The problem shows no password of it, and what to give."""
    url = "https://me:hunter2@flags.example.com/x"
    for problems in (
        resolve({"PROXY_BASE_PATH": url}, None, {}).problems,
        resolve_server({"BASE_URI_PATH": url}, None, {}).problems,
        resolve_server({}, None, {"basePath": url}).problems,
    ):
        (text,) = [each for name, each in problems.items() if name in ("basePath", "proxyBasePath")]
        assert (
            "expected a path such as /base/path, got `https://***@flags.example.com/x`; a whole URL is no path" in text
        )


def test_a_plain_path_is_a_unix_socket() -> None:
    """Where a program listens, an absolute path is that of a Unix socket."""
    assert net.parse_host("/run/flagsvc.sock") == net.parse_address("/run/flagsvc.sock") == "unix:/run/flagsvc.sock"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (False, False),
        ("true", True),
        ("TRUE", True),
        ("no", False),
        ("0", False),
        ("127.0.0.1", ("127.0.0.1",)),
        ("127.0.0.1,192.168.1.1/24", ("127.0.0.1", "192.168.1.0/24")),
        ("10.0.0.0/255.0.0.0", ("10.0.0.0/8",)),
        ("Loopback, linklocal, uniquelocal", ("loopback", "linklocal", "uniquelocal")),
        ("::1", ("::1",)),
        ("2001:db8::/32", ("2001:db8::/32",)),
        ("::ffff:10.1.2.3", ("10.1.2.3",)),
        ("::ffff:10.0.0.0/104", ("10.0.0.0/8",)),
        ("::ffff:0:0/90", ("::ffc0:0:0/90",)),
        ("10.0.0.0/32, 10.0.0.0", ("10.0.0.0",)),
        (["loopback", "10.0.0.1"], ("loopback", "10.0.0.1")),
        ([], ()),
    ],
)
def test_trust(value: object, expected: object) -> None:
    """trustProxy takes booleans, addresses, CIDRs and names, alone or in a list (behaviour: Remote address)."""
    assert net.parse_trust(value) == expected
    assert net.parse_trust(expected) == expected


@pytest.mark.parametrize(
    "value", ["1", "2", "true,10.0.0.1", "10.0.0.0/99", "example.com", "fe80::1%eth0", 5, [True], None]
)
def test_no_trust(value: object) -> None:
    """A number of hops, a host name, and booleans in a list are refused, because each could trust the wrong caller."""
    with pytest.raises(RefusedError):
        net.parse_trust(value)


def test_a_number_of_hops_is_told_apart() -> None:
    """1 may mean one hop or true, so the error suggests `true`."""
    with pytest.raises(RefusedError, match="write `true`"):
        net.parse_trust("1")


def test_names_of_networks_stand_for_networks() -> None:
    """Each name stands for valid networks, and addresses are kept."""
    networks = net.trusted_networks(("loopback", "linklocal", "uniquelocal", "10.0.0.1"))
    assert [str(ipaddress.ip_network(each)) for each in networks][:-1] == list(networks[:-1])
    assert ipaddress.ip_address("127.1.2.3") in ipaddress.ip_network(networks[0])
    assert networks[-1] == "10.0.0.1"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("*", "*"),
        ("https://a.com,*", "*"),
        ("https://a.com", "https://a.com"),
        ("HTTPS://A.com:8443/", "https://a.com:8443"),
        ("https://a.com,", ("https://a.com",)),
        (["https://a.com"], ("https://a.com",)),
        (("https://a.com", "null"), ("https://a.com", "null")),
        ("https://*.example.com", ("https://*.example.com",)),
        ("http://localhost:*", ("http://localhost:*",)),
        ("capacitor://localhost", "capacitor://localhost"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ([], ()),
    ],
)
def test_origins(value: object, expected: object) -> None:
    """One origin stays a text, a list stays a list, and a pattern becomes a list (behaviour: CORS)."""
    assert net.parse_origin(value) == expected
    assert net.parse_origin(expected) == expected


@pytest.mark.parametrize(
    "value",
    ["example.com", "https://a.com/path", "https://", "true", "https://a b", "https://a@b", 5, [5], "https://a.com:x"],
)
def test_no_origins(value: object) -> None:
    """A value that is no valid origin is refused."""
    with pytest.raises(RefusedError):
        net.parse_origin(value)


@pytest.mark.parametrize(
    ("origin", "shown"),
    [
        ("*", "*"),
        ("https://a", "https://a"),
        (("https://a",), "https://a"),
        (("https://a", "null"), "https://a, null"),
        (("https://*.a",), "https://*.a"),
    ],
)
def test_origins_are_shown(origin: net.Origin, shown: str) -> None:
    """Origins are shown with commas between them, and a list of one as that one."""
    assert net.ORIGINS.show(origin) == shown


@pytest.mark.parametrize("value", ["http://[::1]:4242/base/", "https://flags.example", " https://flags.example/ "])
def test_a_web_address(value: str) -> None:
    """It is http or https, and has no slash at its end."""
    found = net.WEB_URL.parse(value)
    assert found == value.strip().rstrip("/") == net.WEB_URL.parse(found)


@pytest.mark.parametrize(
    "value", ["flags.example", "file:/x", "https://a@flags.example", "https://x?a=1", "https://x#a"]
)
def test_what_is_no_web_address(value: str) -> None:
    """A user, a query or a fragment has no place in it."""
    with pytest.raises(RefusedError):
        net.WEB_URL.parse(value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("10.1.2.3/8", ("10.0.0.0/8",)),
        ("! LinkLocal, !metadata", ("!linklocal", "!metadata")),
        (["!::ffff:10.0.0.1", "loopback"], ("!10.0.0.1", "loopback")),
    ],
)
def test_networks_that_webhooks_may_reach(given: object, expected: tuple[str, ...]) -> None:
    """An exclamation mark leaves a network out. The result is read unchanged."""
    assert net.REACH.parse(given) == net.REACH.parse(expected) == expected


@pytest.mark.parametrize("given", ["!", "!!linklocal", "nowhere", "!metadata.example", "300.0.0.1", 5])
def test_no_networks_that_webhooks_may_reach(given: object) -> None:
    """Anything else is refused."""
    with pytest.raises(RefusedError):
        net.REACH.parse(given)


def test_metadata_is_no_network_of_proxies() -> None:
    """The name is for webhooks only."""
    with pytest.raises(RefusedError, match="neither an address nor a CIDR"):
        net.NETWORKS.parse("metadata")
