"""What the store says becomes a sentence of ours at a field of the form; what no row names keeps its words above the form."""

from __future__ import annotations

import pytest

from flagsvc.http.shapes import Array, Integer, Object, OneOf, ShapeError, String, check
from flagsvc.server.pages.problems import Errors, Problem, explain, problems_of, reasons_of, under
from flagsvc.server.store.checks import invalid, make_detail
from flagsvc.server.store.errors import CallerError, bad_data

SAID: dict[str, tuple[str, str]] = {
    '"constraints[2].values[7]" is not allowed to be empty.': ("c2.values", "Give a value."),
    '"[1].overrides[2].contextName" is required.': ("v1.override.2", "Give a field."),
    '"[1].weight" must be a number. You provided "a\\nb".': ("v1.share", "A number is expected, such as 18 or 1.5."),
    '"legalValues[3]" contains a duplicate value. You provided {}.': ("value.3", "This is here twice. Choose another one."),
    '"parameters.url" must be an http or https address': ("url", "An address must be an http or https address."),
    '"expiresAt" is odd': ("expires", "A day is odd."),
    "PAT description already exists.": ("description", "Another token of yours has this description."),
    "Too many PATs (10) already exist for this user.": ("", "You have 10 tokens, and can have no more. Delete one first."),
    "A tag of a:b already exists": ("tag.value", "The flag has this tag already."),
    "The disk is full": ("", "The disk is full"),
}
"""What the store says → field and sentence."""


@pytest.mark.parametrize("text", SAID)
def test_what_the_store_says(text: str) -> None:
    """One table knows the field and the sentence."""
    found = explain(text)
    assert (found.field, str(found)) == SAID[text]


def test_the_field_that_the_form_has() -> None:
    """Of two fields, the one is meant that the form has."""
    assert [explain("User already exists", each).field for each in ((), ("email",))] == ["username", "email"]


SHAPE = Object(
    {"legalValues": Array(Object({"value": String(min_length=1)}, required=("value",))), "limit": Integer()}, closed=True
)


@pytest.mark.parametrize(
    ("body", "field", "sentence"),
    [
        ({"legalValues": [{"value": ""}]}, "value.0", "Give a value."),
        ({"legalValues": [{}]}, "value.0", "Give a value."),
        ({"limit": "x"}, "limit", "A limit is a whole number from 0 to 2147483647."),
        ({"more": 1}, "more", "A more is not allowed."),
        ({"legalValues": [1]}, "value.0", "A value must be object."),
    ],
)
def test_what_a_shape_says(body: object, field: str, sentence: str) -> None:
    """A violation is at the field of its path."""
    with pytest.raises(ShapeError) as refused:
        check(SHAPE, body)
    status, [problem] = problems_of(refused.value)
    assert (status, problem.field, str(problem)) == (400, field, sentence)


def test_alternatives() -> None:
    """That no alternative fits is told only where nothing else is."""
    with pytest.raises(ShapeError) as refused:
        check(OneOf(Object({"type": String(max_length=1)}), Object({"type": Integer()})), {"type": "xx"})
    assert {each.field for each in problems_of(refused.value)[1]} == {"type"}


def test_reasons() -> None:
    """A conflict keeps its message before its reasons; the same is told once, and a problem of the pages stays one."""
    in_use = CallerError("ConflictError", "It is in use", [{"message": "a has it"}])
    assert reasons_of(in_use) == (409, ["It is in use", "a has it"])
    taken = CallerError("NameExistsError", "Segment name already exists")
    assert reasons_of(taken)[1] == ["The name is taken. Choose another name."]
    [own] = problems_of(bad_data(Problem("Tick one.", "to")))[1]
    assert (own, own.field) == ("Tick one.", "to")
    two = problems_of(invalid(make_detail('"name" is not allowed to be empty'), make_detail('"type" is required')))[1]
    assert [each.field for each in two] == ["name", "type"]


def test_errors_of_a_page() -> None:
    """Sentences of one field stand together; the first field that is shown takes the focus; a prefix tells forms apart."""
    problems = under("naming.", [Problem("One.", "a"), Problem("Two.", "b"), Problem("Three.", "a"), "Whole."])
    errors = Errors(problems)
    assert errors == {"naming.a": "One. Three.", "naming.b": "Two."}
    assert [errors.focus(each) for each in ("c", "naming.b", "naming.a", "naming.b")] == [False, True, False, False]
