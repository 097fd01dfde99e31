"""Checks an installed flagsvc with its extras `cli` and `server`: `python release/smoke.py`, by the Python that has it.

The corpus is answered as it must be, `flagsvc server` and `flagsvc proxy` run as in `make demo`, and a page is served.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests/conformance")]

import corpus_cases  # noqa: E402 - both are beside this file, and nothing installs them
import demo  # noqa: E402

import flagsvc  # noqa: E402
from flagsvc.core.version import COMPILED, INTERPRETED, VERSION, engine_form  # noqa: E402

FIRST = {"eu-invoice": "", "new-checkout": "", "banner-text": "variant friendly, Good to see you again!"}
"""Some flags of the demo that its first context gets, and what the demo says about the variant of each."""


def main() -> None:
    """Run the checks, and print a line for each. Raises AssertionError, or FailedError where a program does not start."""
    print(f"flagsvc {VERSION} ({check_form()}) on Python {sys.version.partition(' ')[0]}")
    print(f"{check_corpus()} cases of the corpus are answered right")
    with tempfile.TemporaryDirectory() as folder:
        check_programs(Path(folder))
    print("the flag server and the proxy start, answer and end")


def check_form() -> str:
    """Return whether the engine is compiled, as the wheel says that it is; the wheel has its bill of materials."""
    package = distribution("flagsvc")
    assert not Path(flagsvc.__file__).is_relative_to(ROOT / "src"), f"{flagsvc.__file__} is not installed"
    pure = "Root-Is-Purelib: true" in (package.read_text("WHEEL") or "")
    assert engine_form() == (INTERPRETED if pure else COMPILED), f"it is {engine_form()}, and the wheel says otherwise"
    bill = json.loads(package.read_text("sboms/flagsvc.cdx.json") or "")
    assert bill["metadata"]["component"]["version"] == package.version == VERSION
    return engine_form()


def check_corpus() -> int:
    """Ask every case of the corpus; return how many there are."""
    number = 0
    for group in corpus_cases.groups():
        for case in group:
            asked = corpus_cases.Ours(case.document, case.content.get("options", {})).ask(case)
            assert asked in case.outcomes, f"{case}: {asked}"
            number += 1
    return number


def check_programs(folder: Path) -> None:
    """Run both programs of the demo: the proxy answers with flags of the flag server, a page is there, and both end in order."""
    with demo.listening("server", 4242, lambda port: demo.server_environment(port, folder)) as (server, server_port):
        url = f"http://127.0.0.1:{server_port}"
        demo.wait_ready(server, f"{url}/health")
        demo.fill(url)
        with demo.listening("proxy", 3000, lambda port: demo.proxy_environment(port, url)) as (proxy, port):
            demo.wait_ready(proxy, f"http://localhost:{port}/proxy/health")
            toggles = json.loads(demo.get(f"http://localhost:{port}/proxy?{demo.CONTEXT}"))["toggles"]
            told = {toggle["name"]: demo.describe(toggle["variant"]) for toggle in toggles}
            assert told == told | FIRST, told
        with build_opener(ProxyHandler({})).open(f"{url}/ui/sign-in", timeout=5) as page:
            assert b"<form" in page.read()
    assert (server.process.returncode, proxy.process.returncode) == (0, 0)


if __name__ == "__main__":
    main()
