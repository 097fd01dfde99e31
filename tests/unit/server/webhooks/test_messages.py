"""What a webhook sends of an event: headers, body and signature."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from flagsvc.server.webhooks.provider import key_of, sign
from flagsvc.server.webhooks.sender import make_message

EVENT: dict[str, Any] = {"id": 7, "type": "feature-created", "data": {"name": 'a "b"'}, "summary": '**ada** made **a "b"**'}
URL = "https://hooks.example.com/flags?key=secret"
SECRET = "a secret of the receiver"


def sent(**parameters: str) -> tuple[dict[str, str], bytes]:
    """Return headers and body of a message."""
    message = make_message({"url": URL, **parameters}, EVENT, "some-id", 1_750_000_000)
    assert message.url == URL
    return {name: value.decode() for name, value in message.headers}, message.body


def test_headers_of_the_settings() -> None:
    """Content type, Authorization and further headers are sent; a further one wins over the others, as on the real server."""
    more = '{"X-Team": "shop", "content-type": "text/x", "Authorization": "Basic x"}'
    headers, _ = sent(contentType="text/plain", authorization="Bearer s", customHeaders=more)
    assert (headers["content-type"], headers["authorization"], headers["x-team"]) == ("text/x", "Basic x", "shop")


def test_a_template_makes_the_body() -> None:
    """It knows the event, its JSON in quotes, and its words; only a JSON body escapes values."""
    _, body = sent(bodyTemplate='{"n": "{{event.data.name}}", "all": {{{eventJson}}}, "text": "{{eventMarkdown}}"}')
    made = json.loads(body)
    assert (made["n"], made["text"], json.loads(made["all"])) == ('a "b"', EVENT["summary"], EVENT)
    assert sent(bodyTemplate="{{event.data.name}}", contentType="text/plain; charset=utf-8")[1] == b'a "b"'
    assert sent(bodyTemplate="{{event.data.name}}", contentType="application/x+json")[1] == b'a \\"b\\"'


def test_the_signature_is_the_one_of_the_specification() -> None:
    """It is the HMAC over id, time and body, as in the published example, whose secret is Base64 behind `whsec_`."""
    headers, body = sent(signingSecret=SECRET)
    given = hmac.new(SECRET.encode(), b"some-id.1750000000." + body, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(given).decode()}"
    body = b'{"test": 2432232314}'
    secret, identity = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert sign(secret, identity, 1614265330, body) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    with pytest.raises(ValueError, match="Base64"):
        key_of("whsec_not base64")
