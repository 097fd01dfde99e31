"""Which program a configuration belongs to: by its command line, its image, or its variables."""

from __future__ import annotations

from flagsvc.cli.migrating.compose_files import Service
from flagsvc.cli.migrating.edge_commands import is_program
from flagsvc.cli.migrating.migration import Peer
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.edge import BY_VARIABLE

MARKS = {
    Peer.EDGE: ("UPSTREAM_URL", "BOOTSTRAP_FILE", "PRETRUSTED_TOKENS", "CLIENT_TOKENS", "FRONTEND_TOKENS"),
    Peer.PROXY: ("UNLEASH_URL", "UNLEASH_API_TOKEN", "UNLEASH_PROXY_CLIENT_KEYS", "UNLEASH_PROXY_SECRETS"),
}
"""Peer → variables that it has, and the other one does not."""
IMAGES = {Peer.EDGE: "unleash-edge", Peer.PROXY: "unleash-proxy"}
"""Peer → a part of the names of its container images."""
TITLES = {Peer.EDGE: "Unleash Edge", Peer.PROXY: "@unleash/proxy"}


def describe_marks() -> str:
    """Return which variables show a peer, in words."""
    return " and ".join(f"{', '.join(marks)} ({TITLES[peer]})" for peer, marks in MARKS.items())


def looks_like_peer(service: Service) -> bool:
    """Return whether a service is one of the peers, by its image, its command or its variables."""
    is_named = any(name in service.image for name in IMAGES.values()) or any(map(is_program, service.words))
    return is_named or any(
        mark in service.variables or mark in service.references for marks in MARKS.values() for mark in marks
    )


def find_peer(variables: dict[str, str], image: str, where: str) -> Peer:
    """Return the program that variables configure. Raises ConfigurationError if it is none of the peers, or both."""
    named = [peer for peer, part in IMAGES.items() if part in image]
    found = named or [peer for peer, marks in MARKS.items() if any(mark in variables for mark in marks)]
    if len(found) == 1:
        return found[0]
    if found:
        both = " and of ".join(TITLES[peer] for peer in found)
        raise ConfigurationError([f"{where} has variables of {both}: choose one with `--from`"])
    ours = ": FLAGSVC_URL is there, which flagsvc reads itself" if "FLAGSVC_URL" in variables else ""
    raise ConfigurationError([f"no proxy to move over in {where}{ours}; looked for {describe_marks()}"])


def check_chosen(peer: Peer, variables: dict[str, str], where: str) -> None:
    """Raise ConfigurationError if there is no variable of the program that the user has named."""
    known = {name in BY_VARIABLE if peer is Peer.EDGE else name.startswith("UNLEASH_") for name in variables}
    if True not in known:
        raise ConfigurationError([f"{where} has no variable of {TITLES[peer]}; looked for {', '.join(MARKS[peer])}"])
