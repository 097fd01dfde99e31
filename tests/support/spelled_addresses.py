"""Random addresses of every kind, to compare the normalization of links."""

from __future__ import annotations

import random

SCHEMES = (
    *("http://", "https://", "HTTP://", "//", "", "ftp://", "file://", "file:///", "ws://", "mailto:", "data:"),
    *("http:", "https:/", "foo.bar:", "a+b:", "http:///", "http:\\\\", "localhost:"),
)
HOSTS = (
    *("example.com", "www.example.com", "EXAMPLE.com", "e.com.", "www.www.x.com", "bücher.de", "xn--bcher-kva.de"),
    *(
        "127.0.0.1",
        "0x7f.1",
        "256.1.1.1",
        "1.2.3",
        "[::1]",
        "[::ffff:1.2.3.4]",
        "a_b.c",
        "-a.b",
        "a..b",
        "exa%6Dple.com",
    ),
    *("ex%C3%A9.de", "a%2Fb", "", "user:pw@h.de", "@h.de", "a@b@c.d", "faß.de", "☃.net", "１２７.0.0.1", "日本語。jp"),
    *(
        "a\u00adb.c",
        "xn--a",
        "x" * 64 + ".com",
        "www.a.b",
        "h:0",
        "h:80",
        "h:443",
        "h:99999",
        "h:",
        "h:8a",
        "a b.c",
        "a<b.c",
    ),
)
PATHS = (
    *(
        "/",
        "/a",
        "//a",
        "/a//b",
        "/./a",
        "/../a",
        "/a/..",
        "/a/.",
        "/%2e/a",
        "/%2E%2e/b",
        "/a b",
        "/é",
        "/%C3%A9",
        "/%E9",
    ),
    *("/%", "/%4", "/%41", "/%2F", "/%25", "/%5c", "\\a", "/https://x.com//y", "/ab://c", "/<>`{}|^\"'", "/\t", "/😀"),
    *("/\ud800", "/;a", "/C|/a", "/C:/..", "/%00", "/\x01", "/index.html"),
)
QUERIES = (
    *(
        "",
        "?",
        "?a",
        "?a=1",
        "?b=2&a=1",
        "?a=1&a=0",
        "?utm_source=x",
        "?utm_=1&UTM_x=2&c",
        "?é=ü",
        "?%E9",
        "?a=%E9",
        "?%",
    ),
    *("?a+b=c+d", "?a%20b=c%20d", "?a%26b=c", "?=", "?&&a", "?a&b=", "?'\"<>`{}|^", "?~*-._", "?$$&a", "?$&", "?a=b=c"),
    *("?b&a&utm_x", "?😀=1&\uffff=2", "?\ud800", "?%2B", "?a%3Db", "?a?b", "?zz&utm_a=%E9", "?a%23b"),
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
