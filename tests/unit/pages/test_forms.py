"""Forms with a file, and lists of values as people paste them."""

from __future__ import annotations

import time
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.http.messages import HttpError
from flagsvc.pages.forms import MAX_PARTS, as_area, find_boundary, parse_form, parse_multipart, read_values, show_values

TEXTS = st.text(st.characters(exclude_characters="\0\r\ufeff", codec="utf-8")).filter(lambda text: "--mark" not in text)
NAMES = st.text(st.sampled_from("abc-_."), max_size=10)


def part(name: str, value: str, more: str = "") -> bytes:
    """Return a part of a form."""
    return f'--mark\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}\r\n'.encode()


@given(st.lists(st.tuples(NAMES, TEXTS), max_size=20))
def test_a_form_has_what_was_typed(pairs: list[tuple[str, str]]) -> None:
    """Every value comes back under its name, in order."""
    form = parse_multipart(b"".join([part(name, value) for name, value in pairs]) + b"--mark--\r\n", "mark")
    assert form == {name: [value for each, value in pairs if each == name] for name, _ in pairs}


def test_files() -> None:
    """A file is its text, without a byte order mark; one that was not chosen is left out."""
    chosen = part("file", "\ufeffa\r\nb", '; filename="x.json"\r\nContent-Type: application/json')
    assert parse_multipart(chosen + b"--mark--", "mark") == {"file": ["a\nb"]}
    assert parse_multipart(part("file", "", '; filename=""') + b"--mark--", "mark") == {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--mark\r\n\r\n",
        part("a", "b"),
        b"x" + part("a", "b") + b"--mark--",
        b"--mark\r\nno: name\r\n\r\nx\r\n--mark--",
        b'--mark\r\nContent-Disposition: form-data; name="a"\r\n--mark--',
        part("a", "\0") + b"--mark--",
        part("a", "b").replace(b"b", b"\xff") + b"--mark--",
        part("a", "b") * (MAX_PARTS + 1) + b"--mark--",
    ],
)
def test_what_is_no_form(body: bytes) -> None:
    """It is a 400 with a sentence."""
    with pytest.raises(HttpError, match="the form") as raised:
        parse_multipart(body, "mark")
    assert raised.value.status == 400


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        ("multipart/form-data; boundary=abc", "abc"),
        ('Multipart/Form-Data; charset=utf-8; Boundary="a-b"', "a-b"),
        ("multipart/form-data", ""),
        ("application/json; boundary=abc", ""),
        (f"multipart/form-data; boundary={'a' * 71}", "a" * 70),
    ],
)
def test_boundaries(content_type: str, boundary: str) -> None:
    """Only a form with parts has one."""
    assert find_boundary(content_type) == boundary


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        ("a", ["a"]),
        (" a , b\n\tc ,,\n\n", ["a", "b", "c"]),
        ("a\na,a", ["a"]),
        ('"a, b", c', ["a, b", "c"]),
        ('"say ""hi"""', ['say "hi"']),
        ('""', [""]),
        ('" a "', [" a "]),
        ('"a" b', ['"a" b']),
        ('"a', ['"a']),
        ('a"b', ['a"b']),
        ('"a\nb"', ["a\nb"]),
        (r'\"a\rb\\r", "c\r"', ["a\rb\\r", r"c\r"]),
        (r'\"a" b', [r'\"a" b']),
        (r"C:\new, \d+", [r"C:\new", r"\d+"]),
        (f'"{"x," * 1000}"', ["x," * 1000]),
    ],
)
def test_reading(text: str, values: list[str]) -> None:
    """Values are on lines or separated by commas, without blanks around them; quotes keep all that is inside."""
    assert read_values(text) == values


ODD = st.text(st.sampled_from('ab ,"\n\r\\\t\x0b\x85\u2028é'), max_size=8)


@given(st.lists(ODD | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), unique=True))
def test_what_is_shown_is_read_again(values: list[str]) -> None:
    """A text that shows values is read as the same values, also after a browser has sent it."""
    shown = show_values(values)
    assert read_values(shown) == values
    sent = urlencode({"values": as_area(shown).replace("\n", "\r\n")})
    assert read_values("".join(parse_form(sent.encode()).texts("values"))) == values


@pytest.mark.parametrize(
    "text",
    [
        '""x\n' * 50_000 + '"' * 50_000,
        '"' * 200_000 + "x",
        '"x"",' * 50_000 + '""',
        '""",' * 50_000 + '"',
        '\\"x"",' * 50_000,
        '"a" ' + " " * 200_000 + "x",
        '"x' + '""' * 100_000 + ",",
    ],
)
def test_a_hostile_text_takes_linear_time(text: str) -> None:
    """Many quotes that are never closed are read at once."""
    started = time.monotonic()
    read_values(text)
    assert time.monotonic() - started < 5
