"""Calls that make, show, change and delete webhooks."""

from __future__ import annotations

from typing import Any

from support.admin_call_rows import ADMIN, READER, WRITER, IntendedDifference, delete, get, post, put

PATH = "/api/admin/addons"
ONE = f"{PATH}/{{hook}}"
URL = "https://hooks.example.com/flags"
PARAMETERS = {"url": URL, "authorization": "Bearer s", "customHeaders": '{"X-A":"b"}', "contentType": "text/plain"}
FULL: dict[str, Any] = {
    "provider": "webhook",
    "description": "d",
    "enabled": True,
    "parameters": PARAMETERS,
    "events": ["feature-created"],
    "projects": ["*"],
    "environments": [],
}
MASKED = dict.fromkeys(("url", "authorization", "customHeaders"), "*****") | {"contentType": "text/plain"}
SECRETS = "the real server answers a change with the secrets in plain"
MADE = IntendedDifference(201, '"url":"*****"', 201, SECRETS)
CHANGED = IntendedDifference(200, '"url":"*****"', 200, SECRETS)
ONLY_ONE = IntendedDifference(200, '"addons":[]', 200, "ours has one provider, in its own words")
UNKNOWN = IntendedDifference(400, "the only one is `webhook`", 400, "the real server does not say what is wrong")
MISSING = IntendedDifference(400, "Missing required parameters: url", 400, "the real server does not say what is wrong")
NO_NUMBER = IntendedDifference(400, "must be integer", 500, "the real database refuses it")


def never(words: str) -> IntendedDifference:
    """Return the difference of a webhook that the real server stores although it can never work."""
    return IntendedDifference(400, words, 201, "a webhook that cannot work is not stored")


WEBHOOKS = [
    get(PATH, ours=ONLY_ONE),
    get(PATH, READER, ours=ONLY_ONE),
    post(PATH, FULL, keep="hook", ours=MADE),
    get(ONE),
    get(ONE, READER),
    post(PATH, FULL, READER),
    post(PATH, FULL, WRITER, ours=MADE),
    post(PATH, FULL | {"events": ["nosuch", "change-request-created"]}, ADMIN, ours=MADE),
    get(f"{PATH}/3"),
    post(PATH, {}),
    *[
        post(PATH, {name: FULL[name] for name in list(FULL) if name != left})
        for left in ("provider", "enabled", "events")
    ],
    post(PATH, {"provider": "webhook", "enabled": True, "events": []}),
    post(PATH, FULL | {"enabled": "yes"}),
    post(PATH, FULL | {"parameters": []}),
    post(PATH, FULL | {"events": "x"}),
    post(PATH, FULL | {"projects": {}}),
    post(PATH, FULL | {"parameters": {"url": ""}}),
    post(PATH, FULL | {"parameters": {}}, ours=MISSING),
    post(PATH, FULL | {"provider": "nosuch"}, ours=UNKNOWN),
    *[get(f"{PATH}/{number}") for number in (999, -1)],
    get(f"{PATH}/abc", ours=NO_NUMBER),
    put(ONE, FULL | {"parameters": MASKED, "enabled": False}, ours=CHANGED),
    get(ONE),
    put(ONE, FULL | {"parameters": {"url": "*****"}, "description": None}, WRITER, ours=CHANGED),
    get(ONE),
    put(ONE, {"provider": "webhook", "enabled": True, "parameters": {"url": "*****"}, "events": []}, ours=CHANGED),
    get(ONE),
    put(ONE, {}),
    put(ONE, FULL, READER),
    put(f"{PATH}/999", FULL),
    put(f"{PATH}/999", {}),
    get(f"{ONE}/events"),
    get(f"{ONE}/events?limit=abc"),
    get(f"{ONE}/events?limit=0&offset=-1"),
    get(f"{ONE}/events", WRITER),
    get(f"{ONE}/events", READER),
    get(f"{PATH}/abc/events"),
    get(f"{PATH}/999/events"),
    delete(ONE, READER),
    delete(ONE),
    delete(ONE, WRITER),
    delete(f"{PATH}/abc", ours=NO_NUMBER),
]

CANNOT_WORK = [
    post(PATH, FULL | {"parameters": {"url": "no address"}}, ours=never("must be an http or https address")),
    post(PATH, FULL | {"parameters": {"url": URL, "more": "x"}}, ours=never('"parameters.more" is not allowed')),
    post(PATH, FULL | {"parameters": {"url": URL, "bodyTemplate": "{{#a}}{{"}}, ours=never("must be a template")),
    post(PATH, FULL | {"parameters": {"url": URL, "customHeaders": "{"}}, ours=never("must be a JSON object")),
]

TABLES = {"webhooks": WEBHOOKS, "webhooks that cannot work": CANNOT_WORK}
