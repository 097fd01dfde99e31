"""The choice of the outbound proxy for a request."""

from __future__ import annotations

import pytest

from flagsvc.core.errors import ConfigurationError
from flagsvc.http.client.outbound import Outbound

HTTP, HTTPS = "http://proxy.example:3128", "http://tls-proxy.example:3129"

EXEMPT = [
    ("*", "http://flags.example/api", True),
    ("", "http://flags.example/api", False),
    ("flags.example", "http://flags.example/api", True),
    ("FLAGS.example", "http://Flags.Example/api", True),
    ("flags.example.", "http://flags.example/api", True),
    ("flags.example", "http://flags.example./api", True),
    ("flags.example", "http://eu.flags.example/api", True),
    ("flags.example", "http://myflags.example/api", False),
    ("flags", "http://flags.example/api", False),
    (".example", "http://flags.example/api", True),
    (".flags.example", "http://flags.example/api", False),
    ("*.flags.example", "http://eu.flags.example/api", True),
    ("*.flags.example", "http://flags.example/api", False),
    ("flags.example:80", "http://flags.example/api", True),
    ("flags.example:443", "https://flags.example/api", True),
    ("flags.example:8080", "http://flags.example/api", False),
    ("flags.example:8080", "http://flags.example:8080/api", True),
    ("10.0.0.0/8", "http://10.1.2.3:4242/api", True),
    ("10.0.0.0/8", "http://11.1.2.3/api", False),
    ("10.0.0.0/8", "http://10.example/api", False),
    ("10.1.2.3", "http://10.1.2.3/api", True),
    ("10.1.2.3:81", "http://10.1.2.3/api", False),
    ("3", "http://10.1.2.3/api", False),
    ("::1", "http://[::1]:4242/api", True),
    ("[::1]:4242", "http://[::1]:4242/api", True),
    ("[::1]:4243", "http://[::1]:4242/api", False),
    ("2001:db8::/32", "http://[2001:db8::7]/api", True),
    ("2001:db8::/32", "http://10.0.0.1/api", False),
    ("a.example, ,b.example other.example", "http://other.example/api", True),
    ("a.example,b.example", "http://c.example/api", False),
    ("host:port:more", "http://host/api", False),
]


@pytest.mark.parametrize(("exempt", "url", "direct"), EXEMPT)
def test_no_proxy_exempts_hosts_suffixes_ports_and_networks(exempt: str, url: str, direct: bool) -> None:
    """A host in NO_PROXY is reached directly, any other host through the proxy of its scheme."""
    proxy = Outbound(HTTP, HTTPS, (exempt,)).proxy_for(url)
    expected = HTTPS if url.startswith("https") else HTTP
    assert proxy == (None if direct else expected)


def test_each_scheme_has_a_proxy_of_its_own() -> None:
    """HTTP_PROXY is only for http URLs, HTTPS_PROXY only for https URLs."""
    assert Outbound(HTTP, None).proxy_for("http://flags.example") == HTTP
    assert Outbound(HTTP, None).proxy_for("https://flags.example") is None
    assert Outbound(None, HTTPS).proxy_for("https://flags.example") == HTTPS
    assert Outbound(None, HTTPS).proxy_for("http://flags.example") is None
    assert Outbound("", "").proxy_for("http://flags.example") is None


def test_a_proxy_without_scheme_is_http() -> None:
    """A proxy without a scheme, such as `proxy:3128`, is an http URL."""
    assert Outbound("proxy.example:3128").proxy_for("http://flags.example") == "http://proxy.example:3128"


@pytest.mark.parametrize(
    "proxy", ["socks5://user:hidden@proxy.example:1080", "http://user:hidden@[::1", "http://user:hidden@\u2100x"]
)
def test_a_proxy_of_another_kind_is_refused_without_its_password(proxy: str) -> None:
    """A proxy that is no http URL raises ConfigurationError, which names the variable and does not show the value."""
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY") as caught:
        Outbound(None, proxy).proxy_for("https://flags.example")
    assert "hidden" not in str(caught.value)


def test_the_repr_holds_no_proxy() -> None:
    """The repr shows no proxy URL, because it may contain a password."""
    assert "hidden" not in repr(Outbound("http://u:hidden@p", "http://u:hidden@p", ("x",)))
