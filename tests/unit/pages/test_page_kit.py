"""The kit of pages: forms, origins, static files and segments of paths.

Texts that a browser changes on their way through a form: unchanged ones come back as they are, typed ones as typed.
The files of others: each has the content that its row says. Every other file in the folder is ours.

CONTRIBUTING.md says how to renew a file.
"""

from __future__ import annotations

import base64
import gzip
import re
from hashlib import sha384
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from flagsvc.http.messages import HttpError
from flagsvc.pages.forms import MAX_FIELDS, Form, as_area, as_line, parse_form
from flagsvc.pages.headers import is_own_request
from flagsvc.pages.templates import DATA_SUFFIX, MEDIA, StaticFiles, Templates, make_exact, segment
from sbom import VENDORED
from support.page_forms import forms_in

TEXTS = st.text(st.characters(exclude_characters="\0\r", codec="utf-8"))


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=20))
def test_a_form_has_what_was_typed(pairs: list[tuple[str, str]]) -> None:
    """Every value comes back under its name, in order."""
    form = parse_form(urlencode(pairs).encode())
    assert form == {name: [value for each, value in pairs if each == name] for name, _ in pairs}


def test_fields() -> None:
    """A text is the first value without blanks around it; a box is ticked or not; lines end alike."""
    form = parse_form(b"a=+x+&a=y&box=&text=1%0D%0A2")
    assert (form.text("a"), form.texts("a"), form.text("none"), form.texts("none")) == ("x", [" x ", "y"], "", [])
    assert form.has("box") and not form.has("other") and form.text("text") == "1\n2"


@pytest.mark.parametrize("body", [b"\xff", b"a=%ff", b"a=%00", b"%00=a", b"&".join([b"a=b"] * (MAX_FIELDS + 1))])
def test_what_is_no_form(body: bytes) -> None:
    """It is a 400 with a sentence."""
    with pytest.raises(HttpError, match="the form") as raised:
        parse_form(body)
    assert raised.value.status == 400


@pytest.mark.parametrize(
    ("fetch_site", "origin", "host", "own"),
    [
        (b"same-origin", None, None, True),
        (b"same-origin", b"https://evil", b"flags", True),
        (b"cross-site", b"https://flags", b"flags", False),
        (b"same-site", None, b"flags", False),
        (b"none", None, b"flags", False),
        (b"", b"https://flags", b"flags", False),
        (None, b"https://flags:1", b"FLAGS:1", True),
        (None, b"http://flags", b"flags:80", False),
        (None, b"null", b"null", False),
        (None, b"https://flags", None, False),
        (None, None, b"flags", False),
    ],
)
def test_where_a_change_comes_from(fetch_site: bytes | None, origin: bytes | None, host: bytes | None, own: bool) -> None:
    """What the browser says of the site decides. Only without it the origin does, which must be this host."""
    assert is_own_request(fetch_site, origin, host) is own


@given(TEXTS)
def test_a_text_is_one_segment(text: str) -> None:
    """It comes back when it is decoded, has no slash, and never ends like the address of data."""
    quoted = segment(text)
    assert unquote(quoted) == text and "/" not in quoted and not quoted.endswith(DATA_SUFFIX)


def test_static_files() -> None:
    """A file is found at its address only, in a known kind, with its gzip form. All together have under 60 kB, for a phone."""
    every = StaticFiles()
    for name in ("style.css", "pages.js", "symbol.svg"):
        digest, _, last = every.address(name).partition("/")
        found = every.find(digest, last)
        assert found is not None and found.media in MEDIA.values()
        assert gzip.decompress(found.gzipped) == found.body and digest.encode() in found.tag
        assert every.find("0" * 16, name) is None and every.find(digest, "other.css") is None
    with pytest.raises(KeyError):
        every.address("nosuch.js")
    every = StaticFiles()
    assert sum(len(each.gzipped) for each in every._files.values()) < 60_000


def test_a_name_that_is_missing_is_an_error() -> None:
    """A template never shows an empty text for a name that the page does not have."""
    with pytest.raises(UndefinedError):
        Templates("flagsvc.server.pages", StaticFiles().address).render("error.html", status=404)


def test_a_process_keeps_the_pages_of_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade that replaces the files of the package beneath a running process changes no page of it."""
    package = tmp_path / "some_pages_of_tests"
    (package / "templates").mkdir(parents=True)
    (package / "__init__.py").touch()
    page = package / "templates" / "page.html"
    page.write_text("{{ 1 + 1 }} of this version")
    monkeypatch.syspath_prepend(tmp_path)
    templates = Templates(package.name, StaticFiles().address)
    page.write_text("of another version")
    assert templates.render("page.html") == b"2 of this version"


ODD = st.text(st.sampled_from('ab "<&\n\r\t\x85é'), max_size=8)


def sent(shown: str, at: int = 0, *, lines: bool, typed: str | None = None) -> Form:
    """Return what a browser sends of a field that shows a text, unless another one is typed."""
    [shown_form] = forms_in(f'<form method="post">{make_exact("name", shown, at, lines=lines)}</form>')
    text = (as_area if lines else as_line)(shown) if typed is None else typed
    fields = [*[("name", "other")] * at, ("name", text.replace("\n", "\r\n")), *shown_form.fields]
    return parse_form(urlencode(fields).encode())


@given(ODD | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), st.booleans(), st.integers(0, 2))
def test_an_unchanged_text(text: str, lines: bool, at: int) -> None:
    """It comes back exactly, in a field of one line and of several, and among fields of the same name."""
    form = sent(text, at, lines=lines)
    assert form.trimmed("name")[at] == form.texts("name")[at] == text
    assert at or form.text("name") == text


@pytest.mark.parametrize("typed", ["a", "a ", "", "b\nc"])
def test_a_typed_text(typed: str) -> None:
    """A person may remove the blanks, or type something else."""
    assert sent(" a\r", lines=True, typed=typed).text("name") == typed.strip()


@pytest.mark.parametrize("made_up", ["", "{", "5", "[]", '"b"', "[" * 10_000])
def test_a_made_up_text(made_up: str) -> None:
    """What does not stand for the text that was sent has no effect."""
    form = parse_form(urlencode([("name", " a "), ("=0.name", made_up)]).encode())
    assert (form.text("name"), form.texts("name"), form.trimmed("name")) == ("a", [" a "], ["a"])


FILTERS = ("compare", "export", "flags", "history", "import", "palette", "try", "shown_once", "sign_in")
"""Templates whose fields show nothing that is stored."""
CONTROL = re.compile(
    r'<textarea name="[^"]*"[^>]*>\n\{\{ .*? \}\}</textarea>(?:\{% if .*? %\})?(\{\{ exact\()?'
    r'|<input (?![^>]*type="(?:hidden|checkbox|radio|date|number|color|search)")[^>]*value="\{\{.*?\}\}"[^>]*?>(\{\{ exact\()?'
)


WITHOUT = re.compile(r'\{\{ text\((?!.*type="(?:date|number|color)")(.*)keeps=(?!true).*\) \}\}')
"""A field of the macro that does not keep its exact text."""


def test_every_field_keeps_its_text() -> None:
    """Each field of text of a page that edits has its exact text beside it, but for the lists, which have quotes and escapes."""
    folder = files("flagsvc.server.pages").joinpath("templates")
    texts = [
        each.read_text(encoding="utf-8") for each in folder.iterdir() if each.name.removesuffix(".html") not in (*FILTERS, "fields")
    ]
    assert [found[0] for text in texts for found in CONTROL.finditer(text) if not found[1] and not found[2]] == []
    lists = [found[1] for text in texts for found in WITHOUT.finditer(text)]
    assert len(lists) == 2 and all('"values"' in each for each in lists)


FOLDER = files("flagsvc.pages").joinpath("static")
OURS = {"pages.js", "palette.js", "style.css", "symbol.svg"}


@pytest.mark.parametrize("name", VENDORED)
def test_a_file_is_what_its_row_says(name: str) -> None:
    """The row has its digest, and its name has the version of its package."""
    package, _, _, digest = VENDORED[name]
    assert base64.b64encode(sha384(FOLDER.joinpath(name).read_bytes()).digest()).decode() == digest
    assert package.rpartition("@")[2] in name


def test_every_file_is_known() -> None:
    """No file of others comes in without a row."""
    assert {each.name for each in FOLDER.iterdir()} == OURS | VENDORED.keys()
