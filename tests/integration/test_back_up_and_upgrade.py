"""The commands of docs/how-to/back-up-and-upgrade.md and several-servers.md, as a reader runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flagsvc.core.extras import install_command
from support.flagservers import BACKEND_SECRET, OurFlagServer, our_flag_server
from support.guides import block, blocks, run
from support.waiting import wait_until

PAGE = "back-up-and-upgrade.md"
POSTGRESQL = "postgresql://flags@db/flags"


def names(server: OurFlagServer) -> list[str]:
    """Return the flags that a service gets."""
    answer = server.ask("GET", "/client/features", token=BACKEND_SECRET)
    return [each["name"] for each in answer.json()["features"]]


@pytest.mark.programs
def test_the_commands_of_backups(tmp_path: Path, postgresql_url: str) -> None:
    """Back up, try, restore while the server runs, go back to a former version's database, and move to PostgreSQL."""
    variables = {"FLAGSVC_DATABASE_URL": str(tmp_path / "flags.db")}
    with our_flag_server(folder=tmp_path) as server:
        server.admin("/projects/default/features", {"name": "kept"})
        run(block(PAGE, "# a new file"), tmp_path, variables)
        assert "boss" in run(block(PAGE, "tried.db"), tmp_path, variables)
        server.admin("/projects/default/features", {"name": "later"})
        assert names(server) == ["kept", "later"]
        run(block(PAGE, "restore flags.backup --replace"), tmp_path, variables)
        wait_until(lambda: names(server) == ["kept"])
        install, _, backup = block(PAGE, "before-upgrade.backup\n").strip().partition("\n")
        assert install == install_command("server,cli").replace("install", "install --upgrade")
        run(backup, tmp_path, variables)
        run(block(PAGE, "flags-again.db"), tmp_path, variables)
    run(block(PAGE, POSTGRESQL).replace(POSTGRESQL, postgresql_url), tmp_path, {})
    for database in (str(tmp_path / "flags-again.db"), postgresql_url):
        with our_flag_server(database=database, seeded=False, folder=tmp_path) as server:
            assert names(server) == ["kept"]
    assert len(blocks(PAGE, "sh")) == 6


@pytest.mark.programs
def test_two_servers_on_one_database(tmp_path: Path, postgresql_url: str) -> None:
    """A change on one is on the other within a second or so, with the same entity tag; each is ready."""
    assert block("several-servers.md", "--port 4243").count("flagsvc server --port") == 2
    (tmp_path / "second").mkdir()
    with (
        our_flag_server(database=postgresql_url, folder=tmp_path) as first,
        our_flag_server(database=postgresql_url, folder=tmp_path / "second") as second,
    ):
        first.admin("/projects/default/features", {"name": "shared"})
        wait_until(lambda: names(second) == ["shared"])
        tags = {each.ask("GET", "/client/features", token=BACKEND_SECRET).headers["etag"] for each in (first, second)}
        assert len(tags) == 1
