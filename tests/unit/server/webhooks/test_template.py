"""Body templates: values, sections, what is refused, and limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flagsvc.server.webhooks import template
from flagsvc.server.webhooks.template import (
    DEEPEST,
    MOST_CHARACTERS,
    TemplateError,
    escape_json,
    parse_template,
    render_template,
)

QUOTED = 'a "b" <c> & \\ \n'
EVENT: dict[str, Any] = {
    "type": "feature-created",
    "environment": None,
    "data": {"name": "cart", "description": QUOTED, "stale": False, "count": 3},
    "tags": [{"type": "simple", "value": "one"}, {"type": "simple", "value": "two"}],
}
VALUES = {"event": EVENT, "eventJson": '"{}"'}


def rendered(text: str) -> str:
    """Return what a template makes of VALUES, for JSON."""
    return render_template(parse_template(text), VALUES, escape_json, ("eventJson",))


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("plain", "plain"),
        ("", ""),
        ("{{event.type}}", "feature-created"),
        ("{{ event.data.name }}!", "cart!"),
        ("{{event.data.stale}} {{event.data.count}}", "false 3"),
        ("[{{event.environment}}] [{{event.nothing.here}}] [{{none}}]", "[] [] []"),
        ("{{{event.data.description}}}", QUOTED),
        ("{{& event.data.description}}", QUOTED),
        ("{{{eventJson}}} {{eventJson}}", '"{}" "{}"'),
        ("{{#event.tags}}{{value}},{{/event.tags}}", "one,two,"),
        (
            "{{#event.tags}}{{.}}{{/event.tags}}",
            escape_json('{"type":"simple","value":"one"}{"type":"simple","value":"two"}'),
        ),
        ("{{event.tags.1.value}}{{event.tags.9.value}}", "two"),
        ("{{#event}}{{type}}{{/event}}", "feature-created"),
        ("{{#event.tags}}{{event.type}} {{/event.tags}}", "feature-created feature-created "),
        ("{{#event.environment}}in{{/event.environment}}", ""),
        ("{{^event.environment}}nowhere{{/event.environment}}", "nowhere"),
        ("{{^event.tags}}no tags{{/event.tags}}", ""),
        ("a{{! {x} is a comment }}b", "ab"),
        ("a } b { c }} d", "a } b { c }} d"),
    ],
)
def test_what_a_template_makes(text: str, made: str) -> None:
    """Values, sections and comments are those of Mustache; a list or an object is JSON; nothing stands for null."""
    assert rendered(text) == made


def test_a_value_within_quotes_stays_json() -> None:
    """Two braces write a value as it may stand in a text of JSON, so a name with a quote does not break the body."""
    assert json.loads(rendered('{"text": "{{event.data.description}}"}')) == {"text": QUOTED}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{#a}}", "the section `a` has no end"),
        ("{{#a}}{{/b}}", "`{{/b}}` ends no section: `a` is open"),
        ("{{/a}}", "`{{/a}}` ends no section"),
        ("ab {{x", "the tag at character 4 has no end"),
        ("{{}}", "`{{}}` at character 1 is no value, section or comment"),
        ("{{> partial}}", "is no value, section or comment"),
        ("{{=<% %>=}}", "is no value, section or comment"),
        ("{{a b}}", "is no value, section or comment"),
        ("{{#a}}" * (DEEPEST + 1), "more than 20 sections are within each other"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    """A text that is no template is an error that says where, before it is stored."""
    with pytest.raises(TemplateError) as caught:
        parse_template(text)
    assert reason in str(caught.value)


def test_a_template_cannot_make_a_huge_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists within lists multiply: the text ends with an error at a limit of characters, and of steps."""
    many = {"many": [1] * 300}
    parts = parse_template("{{#many}}{{#many}}{{#many}}x{{/many}}{{/many}}{{/many}}")
    with pytest.raises(TemplateError, match=f"{MOST_CHARACTERS}"):
        render_template(parts, many, escape_json)
    monkeypatch.setattr(template, "MOST_CHARACTERS", 10)
    with pytest.raises(TemplateError, match="makes more than 10 characters"):
        render_template(parse_template("{{a}}"), {"a": "x" * 11}, escape_json)
