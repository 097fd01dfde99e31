"""The containers of Kubernetes manifests, and of the values of Helm charts."""

from __future__ import annotations

import pytest

from flagsvc.cli.migrating.compose_files import MOST_ADDED, Service
from flagsvc.cli.migrating.kubernetes import read_containers, read_values
from flagsvc.core.errors import ConfigurationError

GIVEN = {"FROM_SHELL": "yes"}
CONFIG = "kind: ConfigMap\nmetadata: {name: c}\ndata: {A: from-map, B: '2'}\n"
SECRET = "kind: Secret\nmetadata: {name: s}\ndata: {A: ZnJvbS1zZWNyZXQ=, BAD: '%'}\nstringData: {B: plain}\n"


def only(container: str, *more: str) -> Service:
    """Return the only container of a Pod, beside other documents."""
    pod = f"kind: Pod\nspec: {{containers: [{{name: edge, {container}}}]}}\n"
    (service,) = read_containers({"pod.yaml": "---\n".join([*more, pod])}, GIVEN.get)
    return service


@pytest.mark.parametrize(
    ("container", "variables"),
    [
        ("env: [{name: A, value: '1'}, {name: A, value: '2'}]", "A=2"),
        ("env: [{name: A, value: x}, {name: B, value: $(A)-$(NONE)-$$(A)}]", "A=x B=x-$(NONE)-$(A)"),
        ("env: [{name: A, value: true}, {name: B, value: 1.5}, {name: C}]", "A=true B=1.5 C="),
        ("envFrom: [{configMapRef: {name: c}, prefix: X_}], env: [{name: X_B, value: mine}]", "X_A=from-map X_B=mine"),
        ("envFrom: [{secretRef: {name: s}}]", "A=from-secret B=plain"),
        ("env: [{name: V, valueFrom: {secretKeyRef: {name: s, key: A}}}]", "V=from-secret"),
        ("env: [{name: V, valueFrom: {configMapKeyRef: {name: c, key: B}}}]", "V=2"),
        ("env: [{name: FROM_SHELL, valueFrom: {secretKeyRef: {name: none, key: A}}}]", "FROM_SHELL=yes"),
        ("env: nonsense, envFrom: 7, ports: {}, args: x", ""),
        ("env: [7, {value: 1}, {name: V, valueFrom: {secretKeyRef: 5}}]", "=1"),
    ],
)
def test_variables(container: str, variables: str) -> None:
    """Later variables win over earlier ones, and `env` wins over `envFrom`. Secrets of the same file have values."""
    found = only(container, CONFIG, SECRET).variables
    assert [f"{name}={value}" for name, value in found.items()] == variables.split()


def test_what_stands_elsewhere() -> None:
    """A value that is not in the files is not made up: where it stands is told."""
    found = only(
        "envFrom: [{secretRef: {name: more}}], env: [{name: A, value: old}, {name: A, valueFrom: {secretKeyRef:"
        " {name: s, key: NONE}}}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
        SECRET,
    )
    assert found.variables == {}
    assert found.references == {"envFrom": "the Secret `more`", "A": "key `NONE` of the Secret `s`", "B": "`fieldRef`"}


def test_commands_and_ports() -> None:
    """`command` and `args` are one line, with variables in it; so is the text of a shell."""
    env = "env: [{name: T, value: '*:a.b'}]"
    found = only(f"{env}, command: [/unleash-edge], args: [edge, --tokens, $(T)], ports: [{{containerPort: 3063}}, {{}}]")
    assert (found.words, found.ports) == (["/unleash-edge", "edge", "--tokens", "*:a.b"], [3063])
    assert only(f"{env}, command: [sh, -c, 'edge --tokens \"$T\"']").words == ["edge", "--tokens", "*:a.b"]


@pytest.mark.parametrize(
    ("kind", "head"), [("Deployment", "template: {spec: "), ("CronJob", "jobTemplate: {spec: {template: {spec: ")]
)
def test_what_makes_pods(kind: str, head: str) -> None:
    """Containers are found in every kind that makes pods, and in lists."""
    body = f"{head}{{containers: [{{name: edge}}, {{name: side}}]}}{'}' * head.count('{')}"
    text = f"kind: List\nitems: [{{kind: {kind}, spec: {{{body}}}}}, 5]\n"
    assert [each.name for each in read_containers({"x": text}, GIVEN.get)] == ["edge", "side"]


@pytest.mark.parametrize("text", ["", "5", "kind: Service", "kind: Pod\nspec: {containers: nonsense}", "a: 1\n---\n- b"])
def test_no_manifest(text: str) -> None:
    """A file without a container is told in a sentence."""
    with pytest.raises(ConfigurationError, match="`x` has no container: give the manifest"):
        read_containers({"x": text}, GIVEN.get)


def test_what_multiplies_is_refused() -> None:
    """Variables that name the one before twice, and objects that are taken three thousand times, end in a sentence."""
    doubling = ", ".join(f"{{name: A{n}, value: $(A{n - 1})$(A{n - 1})}}" for n in range(1, 60))
    many = "{configMapRef: {name: c}}, " * 3_000
    data = "kind: ConfigMap\nmetadata: {name: c}\ndata: {" + ", ".join(f"K{n}: ''" for n in range(1000)) + "}\n"
    for container in (f"env: [{{name: A0, value: xx}}, {doubling}]", f"envFrom: [{many}]"):
        with pytest.raises(ConfigurationError, match=f"gets more than {MOST_ADDED} characters"):
            only(container, data)


def test_an_alias_is_of_its_own_document() -> None:
    """An anchor of one document is unknown in the next one, and a value inside of itself is refused in each."""
    for text, problem in (("a: &x 1\n---\nb: *x", "undefined alias"), ("a: &x 1\n---\nb: &y [*y]", "inside of what")):
        with pytest.raises(ConfigurationError, match=problem):
            read_containers({"x": text}, GIVEN.get)


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("edge: {upstreamUrl: http://u}", "UPSTREAM_URL=http://u RUST_LOG=warn LOG_FORMAT=json"),
        ("edge: {logLevel: '', logFormat: plain}", "UPSTREAM_URL=http://unleash.unleash:4242 LOG_FORMAT=plain"),
        (
            "image: {repository: r/unleash-proxy}\nproxy: {clientKeys: [a, b]}",
            "UNLEASH_URL=http://unleash:4242/api UNLEASH_PROXY_CLIENT_KEYS=a,b",
        ),
        ("edge: {upstreamUrl: u}\nenv: [{name: RUST_LOG, value: debug}, 5]", "UPSTREAM_URL=u RUST_LOG=debug LOG_FORMAT=json"),
    ],
)
def test_values_of_charts(text: str, variables: str) -> None:
    """What the chart writes comes first, and `env` wins. A default of the chart counts, but never that of a secret."""
    (found,) = read_values(text, "values.yaml", GIVEN.get)
    assert [f"{name}={value}" for name, value in found.variables.items()] == variables.split()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a", "it is no mapping"),
        ("replicaCount: 2", "no values of a chart that is known"),
        ("image: {repository: unleashorg/unleash-server}", "those of the Unleash server"),
        ("edge: {enable: true}", "no values of a chart that is known"),
        ("a: [", "is not YAML"),
    ],
)
def test_no_values(text: str, problem: str) -> None:
    """Values of anything else are refused with what was looked for."""
    with pytest.raises(ConfigurationError, match=problem):
        read_values(text, "values.yaml", GIVEN.get)
