"""The page of the options: what `flagsvc config` prints, with secrets masked."""

from __future__ import annotations

import json
from pathlib import Path

from flagsvc.settings.load import accepted, resolve
from flagsvc.settings.render import as_json
from support.aio import asynchronous
from support.desk_scene import LOCAL, DeskScene

SECRET = "a-secret-of-callers"
GIVEN = {
    "FLAGSVC_URL": "http://user:pass-word@flags.example/api",
    "FLAGSVC_API_TOKEN": "token-of-upstream",
    "FLAGSVC_PROXY_CLIENT_KEYS": SECRET,
    "FLAGSVC_ADMIN_PAGE_KEYS": "a-key-of-pages",
    "FLAGSVC_ADMIN_ADDRESS": LOCAL,
}


@asynchronous
async def test_the_options_in_effect() -> None:
    """Each option of the command is there, with the same source; no secret is."""
    resolved = resolve(GIVEN, None, {"port": "3001"})
    desk = DeskScene(resolved=resolved)
    text = await desk.text("/ui/config.json")
    found = {each["name"]: each for each in json.loads(text)["options"]}
    printed = json.loads(as_json(resolved))["options"]
    assert {name: each["source"] for name, each in found.items()} == {
        name: each["source"] for name, each in printed.items()
    }
    assert (found["port"]["value"], found["port"]["source"], found["port"]["isSet"]) == ("3001", "flag --port", True)
    page = await desk.text("/ui/config")
    for secret in (SECRET, "token-of-upstream", "pass-word", "a-key-of-pages"):
        assert secret not in text and secret not in page
    assert "environment FLAGSVC_PROXY_CLIENT_KEYS" in page and "options have their defaults" in page


@asynchronous
async def test_options_of_environments(tmp_path: Path) -> None:
    """Each environment has its own."""
    file = tmp_path / "flagsvc.toml"
    file.write_text(
        f'flagsvcUrl = "http://127.0.0.1:1/api"\nadminAddress = "{LOCAL}"\n'
        '[environments.one]\nflagsvcApiToken = "token-of-one"\nclientKeys = ["key-of-one"]\n'
    )
    resolved = resolve({}, file, {})
    accepted(resolved)
    desk = DeskScene(resolved=resolved)
    [part] = (await desk.data("/ui/config.json"))["environments"]
    assert part["name"] == "one" and {each["name"] for each in part["options"] if each["isSet"]} == {
        "flagsvcApiToken",
        "clientKeys",
    }
    page = await desk.text("/ui/config")
    assert "token-of-one" not in page and "key-of-one" not in page


@asynchronous
async def test_options_in_code() -> None:
    """A program that gave its options itself is told so."""
    assert "given in code" in await DeskScene().text("/ui/config")
