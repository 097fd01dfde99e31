"""URLs towards the upstream."""

from __future__ import annotations

import pytest

from flagsvc.errors import ConfigurationError, UpstreamError
from flagsvc.upstream.addresses import base_of, redirected, shown
from flagsvc.upstream.answers import Answer


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
    """Without user, query, fragment and slashes at the end."""
    assert base_of(url) == base


@pytest.mark.parametrize(
    "url", ["", "flags.example", "ftp://flags.example", "http://", "http://h:99999", "http://[::1"]
)
def test_what_is_no_web_address_is_refused(url: str) -> None:
    """The error repeats the address."""
    with pytest.raises(ConfigurationError, match="flagsvcUrl"):
        base_of(url)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://user:hidden@flags.example/api?token=hidden#hidden", "http://flags.example/api"),
        ("user:hidden@flags.example/api", "flags.example/api"),
        ("no url", "no url"),
    ],
)
def test_messages_name_no_user_and_no_query(url: str, text: str) -> None:
    """These are where secrets hide in a URL."""
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
    """Absolute or relative; the default port is the same origin as no port."""
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
    """The token must not be sent to another scheme, host or port."""
    with pytest.raises(UpstreamError, match="another origin") as caught:
        redirected("http://flags.example/api/client/features", Answer(302, {"location": location}))
    assert (caught.value.kind, caught.value.status) == ("unexpected", 302)
