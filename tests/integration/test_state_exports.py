"""Wherever a file of flags is read, a state export of an old server is named as such, with what to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from flagsvc.cli import main
from flagsvc.core.clock import SystemClock
from flagsvc.core.errors import DocumentError
from flagsvc.engine.compile import CompileOptions, Compiler
from flagsvc.proxy.configuration.prepare import Preparer
from flagsvc.proxy.configuration.sources import BootstrapSource
from support.page_forms import PageClient, page_client
from support.state_exports import EXPORTS

NAMED = "is a state export of an old server (version 4); flagsvc does not read it: import it into a server that has both"
TARGET = ("--project", "default", "--environment", "development", "--url", "http://127.0.0.1:9", "--token", "x")


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[PageClient]:
    """Give a flag server."""
    with page_client(f"sqlite:///{tmp_path / 'flags.db'}", {}) as client:
        yield client


READERS: dict[str, tuple[str, ...]] = {
    "validate": ("validate", "FILE", *TARGET),
    "import": ("import", "FILE", *TARGET),
    "apply a seed": ("server", "seed", "apply", "FILE", "--database", "flags.db"),
    "start with a seed": ("server", "--seed", "FILE", "--database", "flags.db", "--port", "0"),
    "evaluate": ("evaluate", "FILE"),
}
"""Commands that read a file of flags. The last one reads JSON alone."""


@pytest.mark.parametrize(
    ("command", "write"), [*product(list(READERS)[:-1], (json.dumps, yaml.safe_dump)), ("evaluate", json.dumps)]
)
def test_commands(
    command: str, write: Callable[[Any], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each says so, with exit code 2, before it sends or serves anything."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "state").write_text(write(EXPORTS[4]))
    assert main([word.replace("FILE", "state") for word in READERS[command]]) == 2
    assert NAMED in capsys.readouterr().err


@pytest.mark.parametrize("operation", ["validate", "import", "import/dry-run"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_admin_api(operation: str, wrapped: bool, pages: PageClient) -> None:
    """The first detail of the 400 names it. What the shape asks for follows, as for every other body."""
    body: Any = EXPORTS[4] | {"project": "default", "environment": "development"}
    if wrapped:
        body = {"project": "default", "environment": "development", "data": EXPORTS[4]}
    answer = pages.client.post(f"/api/admin/features-batch/{operation}", body)
    first, *others = answer.json()["details"]
    assert answer.status == 400 and NAMED in first["message"] and others


def test_the_page_of_imports(pages: PageClient) -> None:
    """The page says it in place of the details of a shape."""
    form = pages.form(pages.get("/ui/import?project=default&environment=development"), "/import")
    shown = pages.press(form, "preview", text=json.dumps(EXPORTS[4]))
    assert shown.status == 400 and NAMED in shown.text and "tagTypes" not in shown.text.partition("<textarea")[0]


def test_a_file_of_the_proxy(tmp_path: Path) -> None:
    """The proxy refuses it as a bootstrap document and as a `file:` URL. Before, it served every flag as off."""
    place = tmp_path / "state.json"
    for value, named in ((EXPORTS[4], NAMED), ({"features": [], "featureStrategies": []}, "is a data set")):
        place.write_text(json.dumps(value))
        fetched = asyncio.run(BootstrapSource(place.as_uri(), clock=SystemClock()).fetch(None))
        assert fetched.body is not None
        with pytest.raises(DocumentError, match="it is a ") as refused:
            asyncio.run(Preparer(Compiler(CompileOptions()))(fetched.body, None))
        assert named in str(refused.value)
