"""The connection to a flag server: certificates, outbound proxies, time limits and request bodies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flagsvc.cli.batch.client import AdminClient, encode_json
from flagsvc.cli.batch.target import Target
from support.cli_helpers import Called, Flagsvc
from support.fake_admin import EMPTY, TOKEN, FakeAdmin, fake_admin
from support.pki import Authority, written

NAMED = ("--project", "shop", "--environment", "production")


def validate(flagsvc: Flagsvc, folder: Path, *arguments: str) -> Called:
    """Validate an empty data set."""
    (folder / "flags.json").write_text(json.dumps(EMPTY))
    return flagsvc("validate", str(folder / "flags.json"), *NAMED, *arguments, env={"FLAGSVC_ADMIN_TOKEN": TOKEN})


def test_certificates(flagsvc: Flagsvc, tmp_path: Path) -> None:
    """An unknown authority is refused with a hint. --ca-file trusts it. --insecure continues with a warning."""
    ours = Authority()
    with fake_admin(ours.server()) as secure:
        refused = validate(flagsvc, tmp_path, "--url", secure.url)
        assert refused.code == 2 and "certificate verify failed" in refused.err and "--ca-file names an authority" in refused.err
        assert secure.asked == []
        trusted = written(tmp_path, "ca.pem", ours.pem)
        assert validate(flagsvc, tmp_path, "--url", secure.url, "--ca-file", trusted).code == 0
        careless = validate(flagsvc, tmp_path, "--url", secure.url, "--insecure")
    assert careless.code == 0
    assert careless.err == f"flagsvc validate: warning: the certificate of `{secure.url}` is not checked\n"


def test_redirects_are_not_followed(admin: FakeAdmin, flagsvc: Flagsvc, tmp_path: Path) -> None:
    """The command does not follow redirects, so that no other host gets the token."""
    with fake_admin() as other:
        admin.say("validate", 307, location=f"{other.url}/x")
        assert validate(flagsvc, tmp_path, "--url", admin.url).code == 2
        assert other.asked == []


def test_the_context_manager_closes(admin: FakeAdmin) -> None:
    """After the block, a request raises RuntimeError."""
    with AdminClient(Target(admin.url)) as client:
        assert client.export({"environment": "x"}) == EMPTY
    with pytest.raises(RuntimeError, match="closed"):
        client.export({"environment": "x"})


@pytest.mark.parametrize(("value", "content"), [({"a": "ü"}, '{"a":"ü"}'.encode()), ({"a": "\ud800"}, b'{"a":"\\ud800"}')])
def test_what_is_sent(value: object, content: bytes) -> None:
    """The body is compact JSON. Half a surrogate pair is sent as an escape."""
    assert encode_json(value) == content
