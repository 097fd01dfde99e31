"""The commands, the receiver and the template of docs/how-to/webhooks.md, as a reader uses them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from flagsvc.server.webhooks.sender import make_body
from support.flagservers import USER_SECRET, our_flag_server
from support.guides import HERE, block, blocks, run
from support.processes import Program, ask, free_port, running
from support.receivers import ADDONS
from support.waiting import wait_until

PAGE = "webhooks.md"
ADDRESS = "http://127.0.0.1:8080/"


def printed(program: Program, text: str) -> bool:
    """Return whether the receiver has printed a text."""
    return text in program.output()


def test_the_receiver_of_the_page(tmp_path: Path) -> None:
    """It prints the test and a switched flag of production, and refuses what does not come from the server."""
    port = free_port()
    script = tmp_path / "receiver.py"
    script.write_text(block(PAGE, "class Receiver", "python").replace("8080", str(port)))
    settings = block(PAGE, "signingSecret", "json").replace(ADDRESS, f"http://127.0.0.1:{port}/")
    (tmp_path / "webhook.json").write_text(settings)
    secret = json.loads(settings)["parameters"]["signingSecret"]
    with (
        our_flag_server(folder=tmp_path) as server,
        running("receiver", [sys.executable, script], env={"WEBHOOK_SECRET": secret}, folder=tmp_path) as program,
    ):
        variables = {"FLAGSVC_ADMIN_TOKEN": USER_SECRET}
        answer = run(block(PAGE, "webhook.json").replace(HERE, server.root), tmp_path, variables)
        assert json.loads(answer)["parameters"]["signingSecret"] == "*****"
        program.wait(lambda: takes(port), "ready")
        run(block(PAGE, "/test -H").replace(HERE, server.root), tmp_path, variables)
        wait_until(lambda: printed(program, '"type":"webhook-test"'))
        server.admin("/projects/default/features", {"name": "cart"})
        for place in ("development", "production"):
            server.admin(f"/projects/default/features/cart/environments/{place}/on", method="POST")
        wait_until(lambda: printed(program, '"environment":"production"'))
        assert not printed(program, '"environment":"development"')
        states = {
            each["state"]
            for each in server.ask("GET", f"{ADDONS.removeprefix('/api')}/1/events").json()["integrationEvents"]
        }
        assert states <= {"success", "waiting"}
    assert len(blocks(PAGE, "sh")) == 2


def takes(port: int) -> bool:
    """Return whether the receiver answers; a request without a signature is refused."""
    headers = {"webhook-id": "some-id", "webhook-timestamp": "1750000000", "webhook-signature": "v1,AAAA"}
    try:
        return ask(f"http://127.0.0.1:{port}/", method="POST", headers=headers, body={}).status == 401
    except OSError:
        return False


def test_the_template_of_the_page() -> None:
    """It makes JSON of an event, also of one with quotes."""
    event: dict[str, Any] = {"featureName": 'a "b"', "summary": '**ada** made **a "b"**', "tags": []}
    template = block(PAGE, "eventMarkdown", "json").strip()
    found = json.loads(make_body(template, "application/json", event))
    assert found == {"text": event["summary"], "flag": event["featureName"], "all": event}
