"""The commands and the program of docs/how-to/first-day.md, in their order on a new server. test_newcomer.py has its pages."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from support.flagservers import our_flag_server
from support.guides import HERE, block, blocks, run

PAGE = "first-day.md"
STRATEGY = {"name": "flexibleRollout", "parameters": {"rollout": "25"}}


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    """The service sees the flag for some users, for none after the switch in the terminal, and the backup has it."""
    with our_flag_server(seeded=False, folder=tmp_path) as server:
        secret = server.first_secrets(tmp_path / "flags.db").token
        variables = {"FLAGSVC_DATABASE_URL": str(tmp_path / "flags.db")}
        assert "/ui/sign-in#" in run(block(PAGE, "sign-in-link"), tmp_path, variables)
        flag = "/admin/projects/default/features"  # what the page does in the browser
        for path, body in (
            (flag, {"name": "new-checkout"}),
            (f"{flag}/new-checkout/environments/development/strategies", STRATEGY),
            (f"{flag}/new-checkout/environments/development/on", {}),
        ):
            assert server.ask("POST", path, body, token=secret).status < 300
        create, _, install = block(PAGE, "token create billing").partition("pip install")
        assert install == " UnleashClient\n"
        run(create, tmp_path, variables)
        (tmp_path / "service.py").write_text(block(PAGE, "UnleashClient(", "python").replace(HERE, server.root))
        service = partial(run, "python service.py\n", tmp_path, variables)
        assert "python service.py\n" in blocks(PAGE, "sh")
        some = service()
        assert some.startswith("new-checkout is on for ['") and some.count("'") < 20
        told = run(block(PAGE, "token create laptop").replace(HERE, server.root), tmp_path, variables)
        assert "new-checkout is on for []" in told and "25 %" in told
        assert service() == some
        run(block(PAGE, "server backup"), tmp_path, variables)
        assert (tmp_path / "first-day.backup").stat().st_mode & 0o777 == 0o600
