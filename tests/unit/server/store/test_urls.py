"""The normalized form of a URL (import validation 6.3, step 6)."""

from __future__ import annotations

import json
import random
import subprocess

import pytest

from flagsvc.server.store.urls import MAX_BARE, BadUrl, normalized
from support import peers

SCHEMES = (
    *("http://", "https://", "HTTP://", "//", "", "ftp://", "file://", "file:///", "ws://", "mailto:", "data:"),
    *("http:", "https:/", "foo.bar:", "a+b:", "http:///", "http:\\\\", "localhost:"),
)
HOSTS = (
    *("example.com", "www.example.com", "EXAMPLE.com", "e.com.", "www.www.x.com", "bücher.de", "xn--bcher-kva.de"),
    *("127.0.0.1", "0x7f.1", "256.1.1.1", "1.2.3", "[::1]", "[::ffff:1.2.3.4]", "a_b.c", "-a.b", "a..b"),
    *("exa%6Dple.com", "ex%C3%A9.de", "a%2Fb", "", "user:pw@h.de", "@h.de", "a@b@c.d", "faß.de", "☃.net"),
    *("１２７.0.0.1", "日本語。jp", "a\u00adb.c", "xn--a", "x" * 64 + ".com"),
    *("www.a.b", "h:0", "h:80", "h:443", "h:99999"),
    *("h:", "h:8a", "a b.c", "a<b.c"),
)
PATHS = (
    *("/", "/a", "//a", "/a//b", "/./a", "/../a", "/a/..", "/a/.", "/%2e/a", "/%2E%2e/b", "/a b", "/é", "/%C3%A9"),
    *("/%E9", "/%", "/%4", "/%41", "/%2F", "/%25", "/%5c", "\\a", "/https://x.com//y", "/ab://c", "/<>`{}|^\"'"),
    *("/\t", "/😀", "/\ud800", "/;a", "/C|/a", "/C:/..", "/%00", "/\x01", "/index.html"),
)
QUERIES = (
    *("", "?", "?a", "?a=1", "?b=2&a=1", "?a=1&a=0", "?utm_source=x", "?utm_=1&UTM_x=2&c", "?é=ü", "?%E9", "?a=%E9"),
    *("?%", "?a+b=c+d", "?a%20b=c%20d", "?a%26b=c", "?=", "?&&a", "?a&b=", "?'\"<>`{}|^", "?~*-._", "?$$&a", "?$&"),
    *("?a=b=c", "?b&a&utm_x", "?😀=1&\uffff=2", "?\ud800", "?%2B", "?a%3Db", "?a?b", "?zz&utm_a=%E9", "?a%23b"),
)
FRAGMENTS = ("", "#", "#x", "#:~:text=a", "#x:~:text=a,b", "#é", "#%", '#<>`"{}|^', "#/", "#\ud800")
ODD = "aW.:/?#&=%\\@[]{}|^`~!$'()*+,;<>\"- \t\nußé\u200d☃0x19_\ud800"


def address(rng: random.Random) -> str:
    """Return an address of known pieces, in some of which a character is put in or replaced."""
    paths = (rng.choice(PATHS) for _ in range(rng.choice((0, 1, 1, 2, 3))))
    text = "".join((rng.choice(SCHEMES), rng.choice(HOSTS), *paths, rng.choice(QUERIES), rng.choice(FRAGMENTS)))
    if rng.random() < 0.8:
        return text
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(ODD) + text[at + rng.randrange(2) :]


SPELLINGS = {
    "example.com": "https://example.com",
    "//example.com/x": "https://example.com/x",
    "HTTP://EXAMPLE.com/PATH": "http://example.com/PATH",
    "https://example.com/x?b=2&a=1": "https://example.com/x?a=1&b=2",
    "http://example.com:80/a/../b/": "http://example.com/b",
    "https://example.com:8080/": "https://example.com:8080",
    "https://example.com:0443/": "https://example.com",
    "https://e.com/?utm_source=q&UTM_x=1&c=2": "https://e.com/?c=2",
    "https://user:pw@www.example.com./": "https://example.com",
    "https://www.www.example.com": "https://www.www.example.com",
    "https://www.x.y": "https://www.x.y",
    "https://example.com//a//b": "https://example.com/a/b",
    "https://example.com/https://other.com//x": "https://example.com/https://other.com/x",
    "https://example.com\\a\\b": "https://example.com/a/b",
    "https://example.com/%41%2f%E9": "https://example.com/%41%2f%E9",
    "https://example.com/%41%2F b": "https://example.com/A%2F%20b",
    "https://example.com/é?q=é": "https://example.com/%C3%A9?q=%C3%A9",
    "https://example.com/%25": "https://example.com/%",
    "https://example.com/?b&a": "https://example.com/?a&b",
    "https://example.com/?q=a%26b": "https://example.com/?q=a&b",
    "https://example.com/?a=%E9": "https://example.com/?a=%EF%BF%BD",
    "https://example.com/?": "https://example.com",
    "https://example.com/a/#frag": "https://example.com/a#frag",
    "https://example.com/#": "https://example.com",
    "https://example.com/#x:~:text=y": "https://example.com/#x",
    "https://example.com/a/./%2e%2E/c": "https://example.com/c",
    "https://example.com/<>`{}|^": "https://example.com/%3C%3E%60%7B%7D|^",
    "https://bücher.de": "https://xn--bcher-kva.de",
    "https://faß.de": "https://xn--fa-hia.de",
    "https://example.com/?$$&a": "https://example.com/?$&a",
    "https://example.com/?a$`b&c": "https://example.com/?ab&c",
    "https://example.com/\ud800": "https://example.com/%EF%BF%BD",
    "https://[::0:1]:443/": "https://[::1]",
    "https://0x7f.1": "https://127.0.0.1",
    "10.0.0.1/x": "https://10.0.0.1/x",
    "  https://example.com\t": "https://example.com",
    "localhost:3000": "localhost:3000",
    "mailto:a@b.c": "mailto:a@b.c",
    "ftp://example.com/x/": "ftp://example.com/x/",
    "file:///x/y/": "file:///x/y",
    "file://localhost/x": "file:///x",
    "data:,x": "data:,x",
    "data:text/plain;charset=US-ASCII;base64, x ": "data:text/plain;base64,x",
    "data:TEXT/html;a = b,x#y": "data:text/html;a=b,x#y",
}
REFUSED = [
    *("", "   ", "/x", "../x", "http://", "https://:80/", "https://exa mple.com", "https://exa%20mple.com", "//"),
    *("https://[::1", "https://256.1.1.1", "https://1.2.3.4.5", "https://example.com:99999", "http:example.com"),
    *("https:example.com", "data:nothing", "https://example.com/?%", "https://example.com/?a&%E9"),
]


@pytest.mark.parametrize(("given", "kept"), SPELLINGS.items())
def test_an_address_has_one_spelling(given: str, kept: str) -> None:
    """Different spellings of a URL have one normalized form."""
    assert normalized(given) == kept


@pytest.mark.parametrize("given", [each for each in SPELLINGS.values() if "%" not in each and "q=a&b" not in each])
def test_the_one_spelling_stays(given: str) -> None:
    """A normalized URL does not change."""
    assert normalized(given) == given


@pytest.mark.parametrize("given", REFUSED)
def test_what_is_no_address(given: str) -> None:
    """A URL that browsers do not accept raises BadUrl."""
    with pytest.raises(BadUrl):
        normalized(given)


def test_a_name_does_not_repeat_the_query_without_end() -> None:
    """A "$`" in a name repeats all that precedes the name, in JavaScript. Names that lengthen the query a lot are refused."""
    assert ours("https://a.b/?!&$`c") == "https://a.b/?!&?!c"
    assert ours("https://a.b/?z&" + "&".join("$`" * 20 + letter for letter in "abcdef")) is None
    assert ours("https://a.b/?long&z" + "$`" * 100_000) is None


def test_parameters_without_equals_signs_are_bounded() -> None:
    """The query is searched once for each parameter without an equals sign, so an address has at most MAX_BARE of them."""
    names = sorted(f"x{number}" for number in range(MAX_BARE))
    assert ours("https://a.b/?" + "&".join(names)) == "https://a.b/?" + "&".join(names)
    assert ours("https://a.b/?" + "&".join([*names, "y"])) is None
    assert ours("https://a.b/?" + "&".join([*names, "y=1"])) is not None


def of_the_real_server(cases: list[str]) -> list[str | None]:
    """Return the URLs as the real server's library normalizes them, or None for a URL that it refuses."""
    module = (peers.package("unleash-server").parent / "normalize-url" / "index.js").as_uri()
    script = f"""
        import {{ readFileSync }} from 'node:fs';
        const {{ default: normalize }} = await import({json.dumps(module)});
        const found = JSON.parse(readFileSync(0, 'utf8')).map((each) => {{
            try {{ return normalize(each, {{ defaultProtocol: 'https' }}); }} catch {{ return null; }}
        }});
        process.stdout.write(JSON.stringify(found));
    """
    command = [peers.node(), "--input-type=module", "-e", script]
    done = subprocess.run(command, input=json.dumps(cases), capture_output=True, text=True, timeout=60, check=True)
    return list(json.loads(done.stdout))


def ours(given: str) -> str | None:
    """Return the normalized form of a URL, or None if it is refused."""
    try:
        return normalized(given)
    except BadUrl:
        return None


@pytest.mark.programs
def test_the_spellings_are_the_real_servers() -> None:
    """The real server's library gives the same result for every case here, and for random URLs with difficult parts."""
    assert of_the_real_server([*SPELLINGS, *REFUSED]) == [*SPELLINGS.values(), *([None] * len(REFUSED))]
    rng = random.Random(20261123)
    cases = [address(rng) for _ in range(10_000)]
    found = dict(zip(cases, of_the_real_server(cases), strict=True))
    assert {case: ours(case) for case in cases} == found
    assert 0.3 < sum(each is not None for each in found.values()) / len(found) < 0.9
