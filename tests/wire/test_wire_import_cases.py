"""Recorded answers of the real server's batch validation (import validation 0.2): over the application ours are the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.batch_scene import Scene, scene_of
from support.flagservers import app_client
from support.import_cases import CASES, comparable, state
from support.processes import Answer

NOT_OUR_WORDS = ("malformed-json",)
"""Cases whose message is the text of a JSON parser: ours has its own."""
OUR_401 = {"message": "our words", "details": [{"message": "our words"}], "path": "our documentation"}
"""What a 401 says in words of our own: the message, which is its one detail too, and the place to go to."""
TOKEN_FIRST = {"client-token-and-malformed-json": 403}
"""Cases that are wrong in the token and in the body, and what ours says: it looks at the token first (decision 0024)."""


def content(when: Mapping[str, Any]) -> bytes:
    """Return the bytes of a request's body: a recorded text, or JSON; a case without either sent `null`."""
    return str(when["bodyText"]).encode() if "bodyText" in when else json.dumps(when.get("body")).encode()


def without_words(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a 401 as it is compared: its fields, its name and its form, without the words. They must agree."""
    assert body["details"] == [{"message": body["message"]}]
    return {name: OUR_401.get(name, value) for name, value in body.items() if name != "id"}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give a database for all cases: `test_store_batch_validate.py` reads both kinds."""
    return f"sqlite:///{tmp_path_factory.mktemp('cases') / 'flags.db'}"


@pytest.fixture(scope="module")
def scene(database: str) -> Iterator[Scene]:
    """Give what makes the database new again for each case."""
    with scene_of(database) as made:
        yield made


def ask(database: str, case: Mapping[str, Any]) -> Answer:
    """Ask a case's request of a server in the case's state; nothing is sent along that the case does not have."""
    when = case["when"]
    headers: dict[str, str | None] = {"content-type": None}
    headers |= {name.lower(): value for name, value in when["headers"].items()}
    with app_client(database, given=state(case["given"])) as client:
        return client.ask(when["method"], when["path"], content(when), token=None, headers=headers)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_recorded_answers(path: Path, database: str, scene: Scene) -> None:
    """Status, body and its type are the recorded ones; of a 401 status, name and form, and its words name no other product."""
    case = json.loads(path.read_text())
    scene.renew()
    answer, then = ask(database, case), case["then"]
    body = answer.json()
    if case["name"] in TOKEN_FIRST:
        assert (answer.status, set(body)) == (TOKEN_FIRST[case["name"]], {"message"})
        return
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.status == then["status"], body
    if any(each in path.stem for each in NOT_OUR_WORDS):
        assert set(body) == set(then["body"])
    elif then["status"] == 401:
        assert without_words(body) == without_words(then["body"])
        assert list(body) == list(then["body"])
        assert "unleash" not in answer.body.decode().lower()
    else:
        assert comparable(body) == comparable(then["body"])
