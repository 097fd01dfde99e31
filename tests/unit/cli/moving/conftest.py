"""Two fake servers, and a move from one to the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.cli_helpers import Called, Flagsvc
from support.fake_admin import Answer, FakeAdmin, fake_admin
from unit.cli.moving.move_scene import FLAGS, NOTHING, SECRETS


@pytest.fixture
def source(admin: FakeAdmin) -> FakeAdmin:
    """Give the server whose flags are moved."""
    admin.answers |= {path: Answer(200, value) for path, value in NOTHING.items()}
    environments = {"environments": [{"name": "development"}, {"name": "production"}]}
    admin.answers["/api/admin/environments"] = Answer(200, environments)
    admin.answers["/api/admin/segments"] = Answer(200, {"segments": [{"id": 1, "name": "beta", "constraints": []}]})
    admin.say("export", 200, FLAGS)
    return admin


@pytest.fixture
def target() -> Iterator[FakeAdmin]:
    """Give the target server, which is empty and accepts everything."""
    with fake_admin() as fake:
        fake.answers |= {path: Answer(200, value) for path, value in NOTHING.items()}
        yield fake


@pytest.fixture
def run(source: FakeAdmin, target: FakeAdmin, flagsvc: Flagsvc) -> Flagsvc:
    """Return a function that moves from the source to the target."""

    def call(*arguments: str, env: dict[str, str] | None = None) -> Called:
        return flagsvc("move", source.url, f"{target.url}/api", *arguments, env=SECRETS if env is None else env)

    return call
