"""The programs of docs/how-to/connect-an-sdk.md run unchanged against our proxy, at the address in the page."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import fake_upstream, needs, peers, processes

PAGE = (processes.ROOT / "docs" / "how-to" / "connect-an-sdk.md").read_text()
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IN_EUROPE = {"contextName": "region", "operator": "IN", "values": ["eu"]}
DOCUMENT = {
    "version": 2,
    "features": [
        {
            "name": "new-checkout",
            "enabled": True,
            "strategies": [{"name": "default", "constraints": [IN_EUROPE]}],
            "variants": [{"name": "green", "weight": 1000}],
        }
    ],
}


@pytest.fixture(scope="module")
def proxy() -> Iterator[processes.Proxy]:
    """Give our proxy with the keys that the page names."""
    keys = {"UNLEASH_PROXY_CLIENT_KEYS": "web-app", "EXP_SERVER_SIDE_SDK_CONFIG_TOKENS": "server-token"}
    with fake_upstream.fake_upstream(DOCUMENT) as upstream, processes.our_proxy(upstream.url, **keys) as found:
        yield found


def programs(language: str, mark: str) -> str:
    """Return the one program of the page in this language that holds `mark`."""
    (found,) = [text for name, text in FENCE.findall(PAGE) if name == language and mark in text]
    return str(found)


def here(text: str, proxy: processes.Proxy) -> str:
    """Return a program of the page with the address of our proxy."""
    assert "https://flags.example.com/" in text
    return text.replace("https://flags.example.com/", proxy.url.removesuffix("proxy"))


@pytest.mark.parametrize("package", ["unleash-proxy-client", "unleash-client"])
def test_javascript(package: str, proxy: processes.Proxy) -> None:
    """The SDKs for browsers and for services print that the flag is on for the page's context."""
    modules = Path(peers.package(package)).parent
    with processes.scratch() as folder:
        (folder / "node_modules").symlink_to(modules)
        (folder / "program.mjs").write_text(here(programs("js", f"'{package}'"), proxy))
        with processes.running("sdk", [peers.node(), "program.mjs"], env={}, folder=folder) as program:
            program.wait(lambda: "new-checkout: true" in program.output(), "told")
            if package == "unleash-proxy-client":
                program.wait(lambda: "variant: green" in program.output(), "told of the variant")


def test_python(proxy: processes.Proxy) -> None:
    """The Python SDK prints the same, and the program ends."""
    with processes.scratch() as folder:
        (folder / "program.py").write_text(here(programs("python", "UnleashClient"), proxy))
        with processes.running("sdk", [sys.executable, "program.py"], env={}, folder=folder) as program:
            program.wait(lambda: "new-checkout: True" in program.output(), "told")
            assert program.process.wait(30) == 0


@pytest.mark.parametrize("mark", ["-g", "toggles"])
def test_shell(mark: str, proxy: processes.Proxy) -> None:
    """Both commands are answered with the flag, on and with its variant."""
    needs.program("curl")
    command = here(programs("sh", f"curl {mark}" if mark == "-g" else mark), proxy)
    told = subprocess.run(["sh", "-ec", command], capture_output=True, text=True, timeout=30, check=True).stdout
    assert '"name":"new-checkout","enabled":true,"variant":{"name":"green"' in told
