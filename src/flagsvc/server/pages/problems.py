"""What is wrong with a form: one table from what the store or a shape says to the field of the form, and to a sentence of ours.

A sentence says what is wrong and what is expected. What no row names keeps its words, and stands above the form.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from flagsvc.core.direction import isolate_quoted
from flagsvc.http.shapes import ShapeError
from flagsvc.server.store.errors import CallerError


class Problem(str):
    """A sentence about a form. `field` is the name of the field that it is about; empty for the whole form."""

    field: str

    def __new__(cls, sentence: str, field: str = "") -> Problem:
        made = super().__new__(cls, isolate_quoted(sentence))
        made.field = field
        return made


def field_of(problem: str) -> str:
    """Return the field that a problem is about; empty for the whole form."""
    return problem.field if isinstance(problem, Problem) else ""


class Errors(dict[str, str]):
    """Field of a form → what is wrong with it. The first field that a page shows takes the focus."""

    def __init__(self, problems: Iterable[str]) -> None:
        super().__init__()
        self.taken = False
        for each in problems:
            if field := field_of(each):
                self[field] = f"{self[field]} {each}" if field in self else str(each)

    def focus(self, field: str) -> bool:
        """Return whether a field takes the focus: the first one with an error that asks."""
        takes = field in self and not self.taken
        self.taken |= takes
        return takes


class Row(NamedTuple):
    """What the store says (a pattern of the whole text), the field, and the sentence. `\\1` is the first group of the pattern.

    Of several fields with `|` in between, the first one that the form has is meant.
    """

    pattern: str
    field: str
    sentence: str


ROWS: Final = (
    Row("A flag with that name already exists", "name", "Another flag has this name. Choose another name."),
    Row(
        "An archived flag with that name already exists",
        "name",
        "The name is taken by a flag in the archive. Choose another name, or revive that flag.",
    ),
    Row(
        r'The feature flag name ".*" does not match the project\'s naming pattern: "(.*?)"\.( Here.*?: ".*?")?.*',
        "name",
        "The name does not fit the pattern of the project: `\\1`.",
    ),
    Row('The feature flag name ".*" cannot be checked .*: (.*)', "name", "The name cannot be checked: \\1"),
    Row(
        r"Segment name already exists|A context field with that name already exist|Strategy with name .* already exist!"
        r"|There already exists an? (?:tag-type|environment) with the name .*",
        "name",
        "The name is taken. Choose another name.",
    ),
    Row("A project with this id already exists.", "id", "The id is taken. Choose another id."),
    Row('"id" must not be .*, which stands for all projects.*', "id", "An id is not `*`: that stands for all projects."),
    Row("PAT description cannot be empty.", "description", "Give a description."),
    Row(
        "PAT description cannot be longer than (.*) characters.",
        "description",
        "A description has at most \\1 characters.",
    ),
    Row("PAT description already exists.", "description", "Another token of yours has this description."),
    Row("The expiry date should be in future.", "expires", "The day is over. Choose a later day."),
    Row(r"Too many PATs \((\d+)\).*", "", "You have \\1 tokens, and can have no more. Delete one first."),
    Row("You must specify username or email", "username", "Give a username or an email address."),
    Row(
        '"(?:value|email)" must be a valid email.*',
        "email",
        "This is no email address. An address is like `ada@example.com`.",
    ),
    Row("User already exists", "username|email", "Another user has this username or email address."),
    Row("Could not find rootRole=.*", "rootRole", "Choose one of these roles."),
    Row("This is the only administrator.*", "rootRole", "\\g<0>."),
    Row("Project '(.*)' does not exist", "project", "There is no project `\\1`. Choose another one."),
    Row("Could not find project with id (.*)", "project", "There is no project `\\1`. Choose another one."),
    Row("Project=(.*) does not exist", "projects", "There is no project `\\1`. Choose others."),
    Row(
        "Environment=(.*) does not exist|Could not find environment with name (.*)",
        "environment",
        "There is no such environment. Choose another one.",
    ),
    Row(".* token cannot be scoped to all environments", "environment", "A token reads one environment. Choose it."),
    Row("These environments do not exist: (.*)", "environments", "These environments do not exist: \\1."),
    Row('No segment exists with ID "(.*)"', "segment", "There is no segment \\1. Choose another one."),
    Row(
        "The segments (.*) does not belong to project .*",
        "segment",
        "Another project has the segment \\1. Choose another one.",
    ),
    Row(r"Strategies may not have more than (\d+) segments", "segment", "A strategy has at most \\1 segments."),
    Row(
        "Invalid project. Segment is being used by strategies in other projects: (.*)",
        "project",
        "Strategies of other projects use the segment: \\1.",
    ),
    Row(
        'The naming pattern ".*" is not a regular expression of JavaScript',
        "pattern",
        "The pattern is no regular expression of JavaScript. A pattern is like `[a-z]+-[0-9]+`.",
    ),
    Row(
        "No name of a flag has white space, .*",
        "pattern",
        "The pattern asks for white space, which no name of a flag has.",
    ),
    Row('The naming pattern ".*" cannot be checked: (.*)', "pattern", "The pattern cannot be checked: \\1."),
    Row("The naming example .* does not match the pattern .*", "example", "The example does not match the pattern."),
    Row("A naming (example|description) needs a pattern beside it", "\\1", "Give a pattern, or leave this empty, too."),
    Row("Missing required parameters: (.*)", "\\1", "Give an address, with http:// or https://."),
    Row("Tag type '(.*)' does not exist", "tag.type", "There is no type `\\1` of tags. Choose another one."),
    Row("A tag of .* already exists", "tag.value", "The flag has this tag already."),
    Row(
        "Invalid URL: .*",
        "url",
        "This is no address of a web page. An address is like `https://example.com/ticket/7`.",
    ),
    Row(r"The (url|title) of a link must not have more than (\d+) characters", "\\1", "At most \\2 characters fit here."),
    Row(r"Too many links \((\d+)\).*", "", "A flag has at most \\1 links. Remove one first."),
    Row(
        "You have reached the maximum number of feature flags for this project.",
        "",
        "The project has as many flags as it may.",
    ),
    Row(
        r"Failed to create (.*)\. You can't create more than the established limit of (\d+)\.",
        "",
        "These are too many: there are at most \\2 (\\1).",
    ),
    Row("A feature flag cannot depend on itself.", "parent", "A flag cannot depend on itself. Choose another parent."),
    Row("No active feature (.*) exists", "parent", "There is no active flag `\\1`. Choose another parent."),
    Row(
        "Parent and child features should be in the same project",
        "parent",
        "The parent is in another project. Choose a flag of the same project.",
    ),
    Row(".*other features depend on.*", "parent", "Other flags depend on this flag, so it can have no parent itself."),
    Row(".*has parent dependency.*", "parent", "This parent has a parent itself. Choose another one."),
    Row('"color" must match pattern .*', "color", "A color is like `#1d4ed8`."),
    Row('"rootRole" .*', "rootRole", "Choose one of these roles."),
    Row(r'"parameters\.bodyTemplate" must be a template: (.*)', "bodyTemplate", "The template is not complete: \\1."),
    Row("the provided value is not a valid semver format.*", "values", "This is no version. A version is like `1.2.3`."),
    Row(
        r"the provided value is not a valid regex string\.(?: Error: error parsing regexp: (.*))?",
        "values",
        "This is no pattern of RE2: \\1.",
    ),
    Row("REGEX operator cannot be inverted.", "inverted", "A pattern takes no `not`. Change the pattern instead."),
)

FIELDS: Final = (
    ("tokenName", "name"),
    ("expiresAt", "expires"),
    (r"addedTags\.0\.(\w+)", "tag.\\1"),
    (r"constraints\.(\d+)\.contextName", "c\\1.field"),
    (r"constraints\.(\d+)\.values?(?:\..*)?", "c\\1.values"),
    (r"constraints\.(\d+)\.(\w+)", "c\\1.\\2"),
    ("contextName", "field"),
    (r"values?(?:\.\d+)?", "values"),
    (r"(?:variants\.)?(\d+)(?:\.name)?", "v\\1.name"),
    (r"(?:variants\.)?(\d+)\.weight", "v\\1.share"),
    (r"(?:variants\.)?(\d+)\.payload(?:\.value)?", "v\\1.payload"),
    (r"(?:variants\.)?(\d+)\.payload\.type", "v\\1.type"),
    (r"(?:variants\.)?(\d+)\.overrides\.(\d+)\.contextName", "v\\1.override.\\2"),
    (r"(?:variants\.)?(\d+)\.overrides\.(\d+)\.values.*", "v\\1.values.\\2"),
    (r"legalValues\.(\d+)(?:\.value)?", "value.\\1"),
    (r"parameters\.(\d+)\.(\w+)", "p\\1.\\2"),
    (r"(?:parameters|featureNaming)\.(\w+)", "\\1"),
    (r"(\w+)", "\\1"),
)
"""Path of a violation → field of the form."""

RULES: Final = (
    (r"is not allowed to be empty|is required|must NOT have fewer than 1 characters", "Give {a_noun}."),
    (r"must be URL friendly", "{A_noun} has only letters from A to Z, digits and the signs - _ . ! ~ * ' ( )."),
    (
        r"length must be less than or equal to (\d+) characters long|must NOT have more than (\d+) characters",
        "{A_noun} has at most {number} characters.",
    ),
    (
        r"length must be at least (\d+) characters long|must NOT have fewer than (\d+) characters",
        "{A_noun} has at least {number} characters.",
    ),
    (r"must contain at least 1 items|must NOT have fewer than 1 items", "Give at least one {noun}."),
    (r"contains a duplicate value", "This is here twice. Choose another one."),
    ('must match format "date-time"', "Choose a day."),
    ("must be a valid date", "A time is expected, such as 2026-12-24T18:00:00Z."),
    (r"must be a number", "A number is expected, such as 18 or 1.5."),
    (r"must be a safe number", "The number has too many digits."),
    (r"must be integer|must be >= 0|must be <= (\d+)", "{A_noun} is a whole number from 0 to 2147483647."),
    (r"must be an IP address or a CIDR range", "Not all of these are networks. A network is like `10.0.0.0/8`."),
    (r"must be equal to one of the allowed values|must match pattern .*", "Choose one of these."),
)
"""Rule that is broken → sentence. `number` is a group of the rule; nouns are those of the field."""
NOUNS: Final = {
    "email": "email address",
    "expires": "day",
    "projects": "project",
    "url": "address",
    "featureLimit": "limit",
    "rootRole": "role",
    "payload": "value of the payload",
    "values": "value",
    "override": "field",
    "contentType": "content type",
    "authorization": "value",
    "customHeaders": "value",
    "bodyTemplate": "template",
    "signingSecret": "secret",
    "defaultStickiness": "field",
}
"""Last part of a field's name → what people call it, where that is not the name."""
PROVIDED: Final = ". You provided "
"""What stands before the value that was sent, in what the store says of a place: `"name" must be a number. You provided "x".`"""
LONGEST: Final = 1000
"""The most characters of a text that are looked at: a text may repeat what was sent, and a pattern may read it twice."""
ONE_OF: Final = "one of"
"""The kind of a fault that says no more than the others beside it."""


NAMELESS: Final = {"missing": "is required", "extra": "is not allowed"}
"""Kind of a fault that names a member → the rule."""


def problems_of(error: CallerError | ShapeError, fields: Collection[str] = ()) -> tuple[int, list[Problem]]:
    """Return the status and the problems of an error, for the page with the form that has these fields."""
    status = 400 if isinstance(error, ShapeError) else error.status
    return status, unique(explain(text, fields) for text in texts_of(error))


def reasons_of(error: CallerError | ShapeError, fields: Collection[str] = ()) -> tuple[int, list[Problem]]:
    """Return what `problems_of` returns, with the message of an error that has reasons before them."""
    status, found = problems_of(error, fields)
    first = [explain(error.message, fields)] if isinstance(error, CallerError) and status != 400 else []
    return status, unique((*first, *found))


def unique(problems: Iterable[Problem]) -> list[Problem]:
    return list({(str(each), each.field): each for each in problems}.values())


def texts_of(error: CallerError | ShapeError) -> Iterator[str]:
    """Give what an error says, one text for each reason; that of a shape in the form of the store's."""
    if isinstance(error, ShapeError):
        known = [each for each in error.faults if each.kind != ONE_OF] or error.faults
        for each in known:
            path = ".".join(str(key) for key in reversed(each.keys))
            path = f"{path}.{each.text}".lstrip(".") if each.kind in NAMELESS else path
            yield f'"{path}" {NAMELESS.get(each.kind, each.text)}'
    elif error.name == "PatternError":
        yield error.message
    else:
        yield from (each.get("message", error.message) for each in error.details)


def explain(text: str, fields: Collection[str] = ()) -> Problem:
    """Return what a text of the store says, in our words, at its field. A text of the pages is a problem already."""
    if isinstance(text, Problem):
        return text
    for row in ROWS:
        found = matched(row.pattern, text)
        if found is not None:
            names = found.expand(row.field).split("|")
            return Problem(found.expand(row.sentence), next((each for each in names if each in fields), names[0]))
    place, said, rule = text.removeprefix('"').partition('" ')
    is_of_place = text.startswith('"') and bool(said) and '"' not in place
    return of_place(place, rule.partition(PROVIDED)[0].removesuffix(".")) if is_of_place else Problem(text)


def matched(pattern: str, text: str) -> re.Match[str] | None:
    return re.fullmatch(pattern, text[:LONGEST], re.DOTALL)


def of_place(path: str, rule: str) -> Problem:
    """Return the problem of a rule that the value at a path breaks."""
    steps = path.replace("[", ".").replace("]", "").lstrip(".")
    field = form_field(steps)
    name = next((each for each in reversed((field or steps).split(".")) if not each.isdigit()), "")
    noun = NOUNS.get(name, name)
    a_noun = f"{'an' if noun[:1] in 'aeio' else 'a'} {noun}"
    for pattern, sentence in RULES:
        found = matched(pattern, rule)
        if found is not None:
            number = next(filter(None, found.groups()), "")
            return Problem(sentence.format(noun=noun, a_noun=a_noun, A_noun=capital(a_noun), number=number), field)
    return Problem(f"{capital(a_noun)} {rule}.", field)


def form_field(path: str) -> str:
    """Return the field of the form that stands for a path; empty for none."""
    for pattern, field in FIELDS:
        found = matched(pattern, path)
        if found is not None:
            return found.expand(field)
    return ""


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def under(prefix: str, problems: Sequence[str]) -> list[str]:
    """Return problems with their fields behind a prefix: those of one row, or of one of several forms of a page."""
    return [Problem(each, prefix + field) if (field := field_of(each)) else each for each in problems]
