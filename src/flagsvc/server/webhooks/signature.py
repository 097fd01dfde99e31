"""Signs what a webhook sends, as the Standard Webhooks specification says: receivers verify it with its libraries or alone. Pure.

The signature is an HMAC with SHA-256 over `id.timestamp.body`, in Base64, with the version `v1` before it (decision 0062).
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from hashlib import sha256

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
PREFIX = "whsec_"
"""A secret that begins with this goes on with its bytes in Base64."""


def key_of(secret: str) -> bytes:
    """Return the key of a secret: the bytes of its text, or those that its Base64 means. Raises ValueError for wrong Base64."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("wrong Base64") from None


def sign(secret: str, identity: str, seconds: int, body: bytes) -> str:
    """Return the signature of a body that is sent with an id at a time (seconds since the epoch). Raises ValueError."""
    signed = f"{identity}.{seconds}.".encode() + body
    return f"v1,{b64encode(hmac.digest(key_of(secret), signed, sha256)).decode()}"
