"""The parameters of a webhook: valid and refused values, and the mask of secrets.

Which events a webhook gets: by type, project and environment, as on the real server.
"""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.outbox import Receiver, places_of, wants
from flagsvc.server.webhooks.provider import MASK, PARAMETERS, check_parameters, check_provider, mask, origin_of

URL = "https://hooks.example.com/a?b=c"
HIDDEN = "hidden-value\n"


def faults(**given: object) -> str:
    """Return what is wrong with parameters."""
    with pytest.raises(CallerError) as caught:
        check_parameters({"url": URL, **given}, {})
    assert caught.value.status == 400
    return " ".join(each["message"] for each in caught.value.details)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("url", "", '"parameters.url" is not allowed to be empty.'),
        ("url", "hooks.example.com", "must be an http or https address"),
        ("url", "ftp://example.com/", "must be an http or https address"),
        ("url", "file:///etc/passwd", "must be an http or https address"),
        ("url", "https://a b/", "must be an http or https address"),
        ("url", "https://ex%61mple.com/", "must have a host that can be asked for"),
        ("url", 7, "must be a string"),
        ("contentType", "a\r\nx: y", "must have printable characters of ASCII only"),
        ("authorization", HIDDEN, "must have printable characters of ASCII only"),
        ("customHeaders", "{nonsense", "must be a JSON object"),
        ("customHeaders", '{"X-A": 7}', "must be a JSON object whose members are texts"),
        ("customHeaders", '{"X A": "b"}', "`X A` is none"),
        ("customHeaders", '{"Host": "b"}', "must not have the header `Host`, which the server itself sends"),
        ("customHeaders", '{"Upgrade": "b"}', "must not have the header `Upgrade`, which the server itself sends"),
        ("customHeaders", '{"Webhook-Id": "b"}', "must not have the header `Webhook-Id`"),
        ("customHeaders", '{"X-A": "hidden-value\\n"}', "printable characters of ASCII only: the header `X-A`"),
        ("bodyTemplate", "{{#a}}", "must be a template: the section `a` has no end"),
        ("signingSecret", "short", "must have at least 16 bytes"),
        ("signingSecret", "whsec_?", "must be Base64 after `whsec_`"),
        ("autorization", "x", '"parameters.autorization" is not allowed. did you mean `authorization`?'),
    ],
)
def test_what_is_refused(name: str, value: object, words: str) -> None:
    """Each wrong value has its reason. The reason never repeats a possible secret."""
    found = faults(**{name: value})
    assert words in found and "hidden-value" not in found


def test_the_address_is_required() -> None:
    """Without it there is nowhere to send to; a mask without a stored value is no address."""
    for given in ({}, {"url": MASK}):
        with pytest.raises(CallerError, match="Missing required parameters: url"):
            check_parameters(given, {})


def test_the_mask_keeps_what_is_stored() -> None:
    """A masked parameter has its stored value. Answers mask all but the type and the template, also what another version stored."""
    stored = {"url": URL, "authorization": "a", "contentType": "text/plain"}
    assert check_parameters({"url": MASK, "contentType": "text/x"}, stored) == {"url": URL, "contentType": "text/x"}
    assert check_parameters({"url": URL, "authorization": MASK}, {}) == {"url": URL}
    shown = mask({row.name: "value" for row in PARAMETERS} | {"later": "value"})
    assert {name for name, value in shown.items() if value != MASK} == {"contentType", "bodyTemplate"}


def test_another_provider_is_refused() -> None:
    """The message names the provider that there is."""
    with pytest.raises(CallerError, match="no provider `slack` of addons here: the only one is `webhook`"):
        check_provider("slack")


def test_the_origin_has_no_secret() -> None:
    """Path, query, user and password are left out."""
    assert origin_of("https://user:pass@hooks.example.com:8443/T0/B0?key=x") == "https://hooks.example.com:8443"


HERE = {"type": "feature-created", "project": "shop", "environment": None}
SWITCHED = {"type": "feature-created", "project": "shop", "environment": "production"}
SERVER_WIDE = {"type": "feature-created", "project": None, "environment": None}


@pytest.mark.parametrize(
    ("event", "filters", "wanted"),
    [
        (HERE, {}, True),
        (HERE, {"events": []}, False),
        (HERE, {"events": ["feature-archived"]}, False),
        (HERE, {"projects": ["shop"]}, True),
        (HERE, {"projects": ["other"]}, False),
        (HERE, {"projects": ["*", "other"]}, True),
        (HERE, {"projects": ["other", "*"]}, False),
        (HERE, {"environments": ["production"]}, True),
        (SWITCHED, {"environments": ["production"]}, True),
        (SWITCHED, {"environments": ["development"]}, False),
        (SWITCHED, {"environments": ["*"]}, True),
        (SWITCHED, {"projects": ["other"], "environments": ["production"]}, False),
        (SERVER_WIDE, {"projects": ["other"], "environments": ["production"]}, True),
    ],
)
def test_which_events_a_webhook_gets(event: dict[str, Any], filters: dict[str, list[str]], wanted: bool) -> None:
    """A filter leaves out only events that have a project or an environment, of another one."""
    given = {"events": ["feature-created"], "projects": [], "environments": []} | filters
    places = places_of(given["projects"]), places_of(given["environments"])
    assert wants(Receiver(1, frozenset(given["events"]), *places, is_administrators=True), event) is wanted


@pytest.mark.parametrize(("event", "wanted"), [(HERE, True), (SERVER_WIDE, False)])
def test_a_webhook_of_no_administrator(event: dict[str, Any], wanted: bool) -> None:
    """The webhook gets no event without a project, also if the webhook names its kind."""
    found = Receiver(1, frozenset({"feature-created"}), frozenset(), frozenset(), is_administrators=False)
    assert wants(found, event) is wanted
