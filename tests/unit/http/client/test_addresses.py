"""URLs of the upstream."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from flagsvc.core.errors import ConfigurationError, UpstreamError
from flagsvc.http.client.addresses import base_of, host_header, host_of, redirected, shown, target_of
from flagsvc.http.client.answers import Answer


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://flags.example/api", "http://flags.example/api"),
        ("http://flags.example/api///", "http://flags.example/api"),
        ("https://flags.example", "https://flags.example"),
        ("http://user:pw@flags.example:4242/api?x=1#y", "http://flags.example:4242/api"),
        ("http://[::1]:4242/", "http://[::1]:4242"),
    ],
)
def test_the_base_address_is_what_paths_are_put_behind(url: str, base: str) -> None:
    """The base URL has no user, query, fragment or trailing slash."""
    assert base_of(url) == base


@pytest.mark.parametrize("url", ["", "flags.example", "ftp://flags.example", "http://", "http://h:99999", "http://[::1"])
def test_what_is_no_web_address_is_refused(url: str) -> None:
    """An address that is no http or https URL raises ConfigurationError."""
    with pytest.raises(ConfigurationError, match="flagsvcUrl"):
        base_of(url)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://user:hidden@flags.example/api?token=hidden#hidden", "http://flags.example/api"),
        ("user:hidden@flags.example/api", "flags.example/api"),
        ("http://user:hid/den@flags.example/api", "http://flags.example/api"),
        ("http://user:hid?den@flags.example/api", "http://flags.example/api"),
        ("http://flags.example/a@b", "http://flags.example/a@b"),
        ("no url", "no url"),
    ],
)
def test_messages_name_no_user_and_no_query(url: str, text: str) -> None:
    """The user and the query of a URL are not shown, because they may contain secrets."""
    assert shown(url) == text


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/unleash/api/client/features?project=x", "http://flags.example:80/unleash/api/client/features?project=x"),
        ("http://flags.example/v2", "http://flags.example/v2"),
        ("v2", "http://flags.example:80/api/client/v2"),
    ],
)
def test_a_redirect_on_the_same_origin_is_followed(location: str, target: str) -> None:
    """The location may be absolute or relative. The default port is the same origin as no port."""
    assert redirected("http://flags.example:80/api/client/features", Answer(302, {"location": location})) == target


@pytest.mark.parametrize(
    "location",
    [
        "https://flags.example/api",
        "http://other.example/api",
        "http://flags.example:81/",
        "//x/",
        "http://[",
        "ftp://x",
        "mailto:x",
    ],
)
def test_a_redirect_elsewhere_is_an_error(location: str) -> None:
    """A redirect to another origin raises UpstreamError, because the token must not be sent there."""
    with pytest.raises(UpstreamError, match="another origin") as caught:
        redirected("http://flags.example/api/client/features", Answer(302, {"location": location}))
    assert (caught.value.kind, caught.value.status) == ("unexpected", 302)


@pytest.mark.parametrize(
    ("url", "host", "header"),
    [
        ("http://Flags.Example:80/x", "flags.example", "flags.example"),
        ("https://flags_1.example.:444", "flags_1.example.", "flags_1.example.:444"),
        ("https://flags.example:443", "flags.example", "flags.example"),
        ("http://straße.example", "xn--strae-oqa.example", "xn--strae-oqa.example"),
        ("http://[::1]:4242/", "::1", "[::1]:4242"),
        ("http://[FE80::1%eth0]/", "fe80::1%eth0", "[fe80::1]"),
        (f"http://{'a' * 63}.b/", f"{'a' * 63}.b", f"{'a' * 63}.b"),
    ],
)
def test_a_host_as_name_servers_know_it(url: str, host: str, header: str) -> None:
    """A host with non-ASCII letters is encoded by IDNA 2008, which keeps an ß. So no other host gets the token."""
    assert (host_of(urlsplit(url)), host_header(urlsplit(url))) == (host, header)


@pytest.mark.parametrize(
    "url",
    [
        *("http://a b/", "http://a\u00ad/", "http://\u00ad/", "http://[v1.a]/", "http://a%0d/", "http://"),
        *("http://a..b/", "http://.a/", "http://./", f"http://{'a' * 64}.b/"),
    ],
)
def test_what_is_no_host(url: str) -> None:
    """An invalid host raises UnicodeError."""
    with pytest.raises(UnicodeError):
        host_of(urlsplit(url))


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h", "/"),
        ("http://h/api", "/api"),
        ("http://h/a b/ä%20?x=ü y&z=%3D", "/a%20b/%C3%A4%20?x=%C3%BC%20y&z=%3D"),
        ("http://h/\x7f\x00?", "/%7F%00"),
    ],
)
def test_a_target_is_what_a_request_line_carries(url: str, target: str) -> None:
    """Invalid characters are percent-encoded. Existing escapes do not change."""
    assert target_of(urlsplit(url)) == target
