"""Body templates: values, sections, what is refused, and limits."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest

from flagsvc.server.webhooks import template
from flagsvc.server.webhooks.template import (
    DEEPEST,
    LONGEST_TEMPLATE,
    MOST_CHARACTERS,
    MOST_STEPS,
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
        ('{"text": "{{event.data.description}}"}', json.dumps({"text": QUOTED})),
        ("{{{event.data.description}}}", QUOTED),
        ("{{& event.data.description}}", QUOTED),
        ("{{{eventJson}}} {{eventJson}}", '"{}" "{}"'),
        ("{{#event.tags}}{{value}},{{/event.tags}}", "one,two,"),
        ("{{#event.tags}}{{.}}{{/event.tags}}", escape_json('{"type":"simple","value":"one"}{"type":"simple","value":"two"}')),
        ("{{event.tags.1.value}}{{event.tags.9.value}}", "two"),
        ("{{#event}}{{type}}{{/event}}", "feature-created"),
        ("{{#event.tags}}{{event.type}} {{/event.tags}}", "feature-created feature-created "),
        ("{{#event.environment}}in{{/event.environment}}", ""),
        ("{{^event.environment}}nowhere{{/event.environment}}", "nowhere"),
        ("{{^event.tags}}no tags{{/event.tags}}", ""),
        ("{{event.tags.11111111111111111111.value}}", ""),
        (f"{{{{event.tags.{'1' * 5000}}}}}", ""),
        ("a{{! {x} is a comment }}b", "ab"),
        ("a{{!}}b{{! }}}c", "ab}c"),
        ("{{#\n event.tags\t}}{{ & value }}{{/ event.tags }}", "onetwo"),
        ("a } b { c }} d", "a } b { c }} d"),
    ],
)
def test_what_a_template_makes(text: str, made: str) -> None:
    """Values, sections and comments are those of Mustache; a list or an object is JSON; nothing stands for null."""
    assert rendered(text) == made


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{#a}}", "the section `a` has no end"),
        ("{{#a}}{{/b}}", "`{{/b}}` ends no section: `a` is open"),
        ("{{/a}}", "`{{/a}}` ends no section"),
        ("ab {{x", "the tag at character 4 has no end"),
        ("{{{a}}", "the tag at character 1 has no end"),
        ("{{{a}} b {{c}}}", "`{{{a}} b {{c}}}` at character 1 is no value, section or comment"),
        ("{{{#a}}}", "`{{{#a}}}` at character 1 is no value, section or comment"),
        ("x" * (LONGEST_TEMPLATE + 1), "a template has at most 65536 characters, this template has 65537"),
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


FULL = LONGEST_TEMPLATE


@pytest.mark.parametrize(
    "text",
    [
        "{{" + " " * (FULL - 2),
        "{{! a" + " " * (FULL - 9) + "b}}x",
        "{{a" + " " * (FULL - 6) + "b}}",
        ("{{" + " " * 98) * (FULL // 100),
        "{{{" * (FULL // 3),
        "{{{ " * (FULL // 8) + "}}} " * (FULL // 8),
        "{" * FULL,
        "{{#a}}" * (FULL // 6),
        "{{#a}}{{/a}}" * (FULL // 12),
        "{{" + "a." * (FULL // 2 - 3) + "a}}",
        "{{a}}" * (FULL // 5),
    ],
    ids=lambda text: text[:12],
)
def test_reading_takes_time_in_proportion_to_the_length(text: str) -> None:
    """The longest template is read within a second, with an error or without: saving holds up all other changes meanwhile."""
    started = time.process_time()
    with contextlib.suppress(TemplateError):
        parse_template(text)
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    "text",
    [
        "{{#many}}" * DEEPEST + "{{/many}}" * DEEPEST,
        "{{^none}}" * (DEEPEST - 1) + "{{#many}}" + "{{nothing}}" * 5000 + "{{/many}}" + "{{/none}}" * (DEEPEST - 1),
        "{{#many}}{{" + "a." * 30_000 + "a}}{{/many}}",
        "{{#many}}" * 3 + "x" + "{{/many}}" * 3,
    ],
    ids=["empty sections", "values of nothing", "a long path", "text"],
)
def test_a_template_cannot_work_for_long(text: str) -> None:
    """Each part, each item of a list and each name of a path is a step, also where nothing is written."""
    with pytest.raises(TemplateError, match=f"more than {MOST_STEPS} steps"):
        render_template(parse_template(text), {"many": [1] * 300}, escape_json)


def test_a_template_cannot_make_a_huge_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text ends with an error at a limit of characters."""
    with pytest.raises(TemplateError, match=f"more than {MOST_CHARACTERS} characters"):
        render_template(parse_template("{{a}}" * 1000), {"a": "x" * 1100}, escape_json)
    monkeypatch.setattr(template, "MOST_CHARACTERS", 10)
    with pytest.raises(TemplateError, match="makes more than 10 characters"):
        render_template(parse_template("{{a}}"), {"a": "x" * 11}, escape_json)
