"""The containers of Kubernetes manifests, or of the Helm charts of both peers: variables, command lines and ports.

The ConfigMaps and Secrets of the same files count. A value that stands in another object is not made up: its variable becomes a
reference, which says where the value is.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from flagsvc.cli.migrating.compose_files import MOST_ADDED, Service, Tree, scalar_text
from flagsvc.cli.migrating.env_files import Lookup, Meter
from flagsvc.core.errors import ConfigurationError
from flagsvc.settings.kinds import printable

Objects: TypeAlias = Mapping[tuple[str, str], Mapping[str, str]]
"""Kind and name of a ConfigMap or a Secret → its data."""

VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z0-9_.-]+)\)")
"""An escaped dollar sign, or a variable, as Kubernetes has them in values and commands."""
TEMPLATE = "{{"
POD_SPECS = ((), ("spec",), ("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec"))
"""Where an object has the specification of its pods: a Pod, what makes pods, a CronJob."""
MAPS, SECRETS = "ConfigMap", "Secret"
SOURCES = {"configMapRef": MAPS, "secretRef": SECRETS, "configMapKeyRef": MAPS, "secretKeyRef": SECRETS}
ALL = "envFrom"
"""What stands for the names of variables that are not known."""


def read_containers(texts: Mapping[str, str], lookup: Lookup) -> list[Service]:
    """Return the containers of manifests, given by path. Raises ConfigurationError if a text is no manifest.

    `lookup` returns the value of a variable whose value is not in the manifests.
    """
    objects = [each for where, text in texts.items() for each in _objects(text, where)]
    data = {(str(each["kind"]), _name(each)): _data(each) for each in objects if each.get("kind") in (MAPS, SECRETS)}
    shown = ", ".join(printable(where, 300) for where in texts)
    meter = Meter(shown, MOST_ADDED)
    found = [ContainerReader(body, data, lookup, meter).read() for each in objects for body in _containers(each)]
    if not found:
        raise ConfigurationError([f"`{shown}` has no container: give the manifest of a Deployment or a Pod"])
    return found


def _objects(text: str, where: str) -> Iterator[Tree]:
    """Yield the objects of the documents of a file. The items of a list are objects of their own."""
    from flagsvc.cli.batch.yaml_files import read_documents

    shown = printable(where, 300)
    try:
        documents = read_documents(text, shown)
    except ConfigurationError as error:
        if TEMPLATE not in text:
            raise
        hint = "it is a template of Helm: give what `helm template` prints, or the values with `--helm`"
        raise ConfigurationError([f"{error.problems[0]}; {hint}"]) from None
    for document in documents:
        items = document.get("items") if isinstance(document, dict) else None
        for each in items if isinstance(items, list) else [document]:
            if isinstance(each, dict) and isinstance(each.get("kind"), str):
                yield each


def _name(tree: Tree) -> str:
    metadata = tree.get("metadata")
    return scalar_text(metadata.get("name")) if isinstance(metadata, dict) else ""


def _data(tree: Tree) -> dict[str, str]:
    """Return the data of a ConfigMap or a Secret. What is no text in base64 is left out."""
    plain, coded = ("stringData", "data") if tree["kind"] == SECRETS else ("data", "")
    found = {}
    for name, value in _pairs(tree.get(coded)):
        try:
            found[name] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, ValueError):
            continue
    return found | dict(_pairs(tree.get(plain)))


def _pairs(value: object) -> list[tuple[str, str]]:
    return [(name, scalar_text(item)) for name, item in value.items()] if isinstance(value, dict) else []


def _containers(tree: Tree) -> Iterator[Tree]:
    for path in POD_SPECS:
        place: Any = tree
        for name in path:
            place = place.get(name) if isinstance(place, dict) else None
        yield from trees(place.get("containers") if isinstance(place, dict) else None)


def trees(value: object) -> list[Tree]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


class ContainerReader:
    """Reads one container."""

    def __init__(self, body: Tree, objects: Objects, lookup: Lookup, meter: Meter) -> None:
        self._service = Service(printable(scalar_text(body.get("name"))), "container")
        self._body = body
        self._objects = objects
        self._lookup = lookup
        self._meter = meter

    def read(self) -> Service:
        service, body = self._service, self._body
        service.image = scalar_text(body.get("image"))
        for each in trees(body.get("envFrom")):
            self._take_all(each)
        for each in trees(body.get("env")):
            self._take(scalar_text(each.get("name")), each)
        words = [self._expand(word) for key in ("command", "args") for word in self._words(key)]
        service.words = service.in_shell("command", words, self._meter)
        ports = [each.get("containerPort") for each in trees(body.get("ports"))]
        service.ports = [port for port in ports if isinstance(port, int)]
        return service

    def _take_all(self, entry: Tree) -> None:
        """Add the variables of a whole object, with the prefix of the entry."""
        prefix = scalar_text(entry.get("prefix"))
        for key, kind, source in _sources(entry):
            found = self._objects.get((kind, _named(source)))
            if found is None:
                self._service.references[ALL] = _place(key, source)
            for name, value in (found or {}).items():
                self._set(prefix + name, value)

    def _take(self, name: str, entry: Tree) -> None:
        """Add one variable. A later one wins."""
        source = entry.get("valueFrom")
        if not isinstance(source, dict):
            self._set(name, self._expand(scalar_text(entry.get("value"))))
            return
        value, place = self._find(source)
        given = self._lookup(name) if value is None else value
        if given is not None:
            self._set(name, given)
        else:
            self._service.variables.pop(name, None)
            self._service.references[name] = place

    def _find(self, source: Tree) -> tuple[str | None, str]:
        """Return the value that an entry takes from elsewhere, None if it is unknown, and where it is."""
        for key, kind, each in _sources(source):
            found = self._objects.get((kind, _named(each)), {})
            return found.get(scalar_text(each.get("key"))), _place(key, each)
        return None, ", ".join(f"`{printable(name)}`" for name in source)

    def _set(self, name: str, value: str) -> None:
        self._meter.count(len(name) + len(value), name)
        self._service.references.pop(name, None)
        self._service.variables[name] = value

    def _expand(self, text: str) -> str:
        """Return a text with `$(NAME)` replaced by variables that stand before it. An unknown one stays as it is."""

        def replacement(found: re.Match[str]) -> str:
            value = "$" if found[1] is None else self._service.variables.get(found[1], found[0])
            self._meter.count(len(value), found[0])
            return value

        return VARIABLE.sub(replacement, text)

    def _words(self, key: str) -> Sequence[str]:
        given = self._body.get(key)
        return [scalar_text(word) for word in given] if isinstance(given, list) else []


def _sources(entry: Tree) -> Iterator[tuple[str, str, Tree]]:
    """Yield the references of an entry to objects: the key, the kind of the object, and what names it."""
    for key, kind in SOURCES.items():
        source = entry.get(key)
        if isinstance(source, dict):
            yield key, kind, source


def _named(source: Tree) -> str:
    """Return the name of the object that a reference names."""
    return scalar_text(source.get("name"))


def _place(key: str, source: Tree) -> str:
    """Return where a reference leads, in words."""
    name = f"{SOURCES[key]} `{printable(_named(source))}`"
    return f"key `{printable(scalar_text(source.get('key')))}` of the {name}" if "key" in source else f"the {name}"


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
