"""Texts that a browser changes on their way through a form: unchanged ones come back as they are, typed ones as typed."""

from __future__ import annotations

import re
from importlib.resources import files
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.pages.forms import Form, as_area, as_line, parse_form
from flagsvc.pages.templates import make_exact
from support.page_forms import FormReader

ODD = st.text(st.sampled_from('ab "<&\n\r\t\x85é'), max_size=8)


def sent(shown: str, at: int = 0, *, lines: bool, typed: str | None = None) -> Form:
    """Return what a browser sends of a field that shows a text, unless another one is typed."""
    reader = FormReader()
    reader.feed(f'<form method="post">{make_exact("name", shown, at, lines=lines)}</form>')
    text = (as_area if lines else as_line)(shown) if typed is None else typed
    fields = [*[("name", "other")] * at, ("name", text.replace("\n", "\r\n")), *reader.forms[0].fields]
    return parse_form(urlencode(fields).encode())


@given(
    ODD | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), st.booleans(), st.integers(0, 2)
)
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


FILTERS = ("compare", "export", "flags", "history", "import", "try", "shown_once", "sign_in")
"""Templates whose fields show nothing that is stored."""
CONTROL = re.compile(
    r'<textarea name="[^"]*"[^>]*>\n\{\{ .*? \}\}</textarea>(?:\{% if .*? %\})?(\{\{ exact\()?'
    r'|<input (?![^>]*type="(?:hidden|checkbox|radio|date|number|color|search)")[^>]*value="\{\{.*?\}\}"[^>]*?>(\{\{ exact\()?'
)


def test_every_field_keeps_its_text() -> None:
    """Each field of text of a page that edits has its exact text beside it, but for the lists, which have quotes and escapes."""
    folder = files("flagsvc.server.pages").joinpath("templates")
    pages = [each for each in folder.iterdir() if each.name.removesuffix(".html") not in FILTERS]
    without = [
        f"{page.name}: {found[0]}"
        for page in pages
        for found in CONTROL.finditer(page.read_text(encoding="utf-8"))
        if not found[1] and not found[2]
    ]
    assert [each.partition(":")[0] for each in without] == ["variants_editor.html"] and ".values" in without[0]
