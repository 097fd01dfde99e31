"""`flagsvc server seed apply` as a command: plans, exit codes and bad files, on the database of each kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flagsvc.server.store.store import Store
from support.cli_helpers import Called, Flagsvc
from support.guides import block

pytestmark = pytest.mark.one_database

APPLY = ("seed", "apply")
SEED = """
environments: [{name: production, type: production}]
tokens: [{type: admin, secret: "*:*.s3cret"}]
features: [{name: cart, enabled: [production]}]
strategies: [{feature: cart, environment: production, name: flexibleRollout, parameters: {rollout: "25"}}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give a seed file."""
    path = tmp_path / "flags.yaml"
    path.write_text(SEED)
    return path


def test_plan_and_apply(store: Store, run: Flagsvc, file: Path) -> None:
    """A plan with changes exits with 3 and writes nothing, the same changes are made then, and the next plan exits with 0."""
    revision = store.revision()
    planned = run(*APPLY, file, "--plan")
    assert planned.code == 3 and store.revision() == revision
    assert planned.out.splitlines()[-1] == "created the flag cart in default" and "s3cret" not in planned.out
    assert planned.err.endswith("changes, a plan: nothing is written\n")
    made = run(*APPLY, file)
    assert (made.code, made.out, store.revision()) == (0, planned.out, revision + 1)
    assert made.err.endswith("changes made\n")
    said = f"flagsvc server seed apply: nothing to change: the database is as `{file}` says\n"
    assert run(*APPLY, file, "--plan") == run(*APPLY, file) == Called(0, "", said)
    file.write_text(SEED.replace('"25"', '"50"'))
    changed = run(*APPLY, file, "--plan")
    assert (changed.code, changed.out.splitlines()) == (
        3,
        ["changed flexibleRollout of cart in production", '    parameters: {"rollout": "25"} → {"rollout": "50"}'],
    )


def test_the_page_shows_every_line(store: Store, run: Flagsvc, file: Path) -> None:
    """What the guide shows below the command is what the plan prints, on both outputs."""
    rule = "{feature: new-checkout, environment: production, name: flexibleRollout, parameters: {rollout: '%s'}}"
    text = "features: [{name: new-checkout, project: default, enabled: [%s]}]\nstrategies: [%s]\n"
    file.write_text(text % ("production", rule % 25))
    assert run(*APPLY, file).code == 0
    file.write_text(text % ("production, development", rule % 50))
    planned = run(*APPLY, file, "--plan")
    assert block("run-the-flag-server.md", "flexibleRollout of", "text") == planned.out + planned.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is neither JSON nor YAML"),
        (json.dumps({"featurs": []}), "featurs: is not a key of a seed file: did you mean `features`?"),
        (json.dumps({"tokens": [{"secret": "s3cret", "type": "x"}]}), "tokens[0].type: expected one of admin, backend"),
    ],
)
def test_bad_files(store: Store, run: Flagsvc, file: Path, content: str, message: str) -> None:
    """What is wrong, where, and what was expected: exit code 2, no trace, no secret, no change."""
    file.write_text(content)
    revision = store.revision()
    for more in ((), ("--plan",)):
        called = run(*APPLY, file, *more)
        assert (called.code, called.out) == (2, "") and message in called.err
        assert "s3cret" not in called.err and "Traceback" not in called.err
    assert store.revision() == revision


def test_what_cannot_be_opened(store: Store, run: Flagsvc, tmp_path: Path, file: Path) -> None:
    """A missing file is exit code 2. A missing database is 1, and no database is created."""
    called = run(*APPLY, tmp_path / "nothing.yaml")
    assert called.code == 2 and "cannot be read" in called.err
    called = run(*APPLY, file, "--database", tmp_path / "nothing.db")
    assert called.code == 1 and "does not exist" in called.err and not (tmp_path / "nothing.db").exists()
