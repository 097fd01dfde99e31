"""Values of the Helm charts of both peers, as the container that the charts make of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from flagsvc.cli.migrating.compose_files import MOST_ADDED, Service, Tree, scalar_text
from flagsvc.cli.migrating.interpolation import Lookup, Meter
from flagsvc.cli.migrating.kubernetes import TEMPLATE, ContainerReader
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.kinds import printable

CHART = "chart"
SERVER = ("dbConfig", "containerPort", "cnpg")
"""Values that only the chart of the Unleash server has."""


class Chart(NamedTuple):
    """One chart: the key of its values, those that become a variable (value, variable, the chart's default), and its port."""

    key: str
    marks: tuple[str, ...]
    values: tuple[tuple[str, str, str], ...]
    port: int


CHARTS = {
    "unleash-edge": Chart(
        "edge",
        ("upstreamUrl", "logLevel", "logFormat", "command"),
        (
            ("upstreamUrl", "UPSTREAM_URL", "http://unleash.unleash:4242"),
            ("logLevel", "RUST_LOG", "warn"),
            ("logFormat", "LOG_FORMAT", "json"),
        ),
        3063,
    ),
    "unleash-proxy": Chart(
        "proxy",
        ("serverHost", "apiToken", "clientKeys", "apiTokenSecret", "clientKeysSecret"),
        (
            ("serverHost", "UNLEASH_URL", "http://unleash:4242/api"),
            ("apiToken", "UNLEASH_API_TOKEN", ""),
            ("clientKeys", "UNLEASH_PROXY_CLIENT_KEYS", ""),
            ("logLevel", "LOG_LEVEL", ""),
            ("unleashAppName", "UNLEASH_APP_NAME", ""),
            ("environment", "UNLEASH_ENVIRONMENT", ""),
            ("unleash_instance_id", "UNLEASH_INSTANCE_ID", ""),
        ),
        3000,
    ),
}
"""A part of the name of the image → its chart. Secrets have no default here, although the charts have one."""
SIDECAR = "http://localhost:3063/api"
"""Where the chart of the proxy has an Edge beside it."""
BESIDE = 'an Edge beside the proxy serves a file: flagsvc reads it itself, as flagsvcUrl = "file:///PATH"'


def read_values(text: str, where: str, lookup: Lookup) -> list[Service]:
    """Return the container that the values of a chart make. Raises ConfigurationError if they are of neither chart."""
    from flagsvc.cli.batch.yaml_files import read_yaml

    shown = printable(where, 300)
    tree = read_yaml(text, shown)
    if not isinstance(tree, dict):
        raise ConfigurationError([f"`{shown}` has no values of a chart: it is no mapping"])
    name = _chart_of(tree, shown)
    reader = _ValuesReader(tree, CHARTS[name])
    body = {"name": name, "image": name, **reader.container()}
    service = ContainerReader(body, {}, lookup, Meter(shown, MOST_ADDED)).read()
    service.kind = CHART
    service.odd += reader.odd
    return [service]


def _chart_of(tree: Tree, shown: str) -> str:
    """Return the chart whose values these are. Raises ConfigurationError."""
    image = scalar_text(_below(tree, "image").get("repository"))
    for name, chart in CHARTS.items():
        if name in image or any(mark in _below(tree, chart.key) for mark in chart.marks):
            return name
    if any(mark in tree for mark in SERVER) or "unleash-server" in image:
        other = "they are those of the Unleash server; `flagsvc move` copies its flags, and migrate is for its proxies"
        raise ConfigurationError([f"`{shown}` has no values of a proxy: {other}"])
    looked = " or ".join(f"`{chart.key}.{chart.marks[0]}` ({name})" for name, chart in CHARTS.items())
    raise ConfigurationError([f"`{shown}` has no values of a chart that is known: looked for {looked}"])


def _below(tree: Tree, key: str) -> dict[str, Any]:
    """Return the mapping at a key; empty without one."""
    value = tree.get(key)
    return value if isinstance(value, dict) else {}


class _ValuesReader:
    """Makes a container of values. `odd` are texts about values that could not be read."""

    def __init__(self, tree: Tree, chart: Chart) -> None:
        self._tree = tree
        self._chart = chart
        self._own = _below(tree, chart.key)
        self.odd: list[str] = []

    def container(self) -> dict[str, Any]:
        """Return what the chart writes into the container, in the order of the chart: later variables win."""
        named = self._tree.get("existingSecrets")
        secrets = named if isinstance(named, list) else []
        more = self._tree.get("env")
        env = [*self._variables(), *secrets, *(more if isinstance(more, list) else [])]
        return {
            "env": [with_reference(each) for each in env if isinstance(each, dict)],
            "envFrom": list(self._whole_objects()),
            "args": self._command(),
            "ports": [{"containerPort": self._own.get("port", self._chart.port)}],
        }

    def _variables(self) -> Iterator[dict[str, Any]]:
        """Yield the variables that values of the chart become."""
        beside = self._chart is CHARTS["unleash-proxy"] and _below(self._tree, "edge").get("enable") is True
        if beside:
            self.odd.append(BESIDE)
        for key, variable, default in self._chart.values:
            secret = _below(self._own, f"{key}Secret")
            if secret.get("enabled") is True:
                yield {"name": variable, "valueFrom": {"secretKeyRef": secret}}
                continue
            value = SIDECAR if beside and variable == "UNLEASH_URL" else self._own.get(key, default)
            text = ",".join(map(scalar_text, value)) if isinstance(value, list) else scalar_text(value)
            if text:
                yield {"name": variable, "value": text}

    def _whole_objects(self) -> Iterator[dict[str, Any]]:
        """Yield the Secret and the ConfigMap whose keys are all variables."""
        for key, kind in (("existingSecrets", "secretRef"), ("existingConfigMap", "configMapRef")):
            name = self._tree.get(key)
            if isinstance(name, str) and name:
                yield {kind: {"name": name}}

    def _command(self) -> list[Any]:
        """Return the words of the command, of one text or of a list."""
        command = self._own.get("command")
        return command if isinstance(command, list) else scalar_text(command).split()


def with_reference(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of `env`. A value that is a template becomes a reference, because only Helm knows its text."""
    value = entry.get("value")
    is_template = isinstance(value, str) and TEMPLATE in value
    return {"name": entry.get("name"), "valueFrom": {"a template of the chart": {}}} if is_template else entry
