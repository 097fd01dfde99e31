"""A backup of another proxy as our storage, so that a proxy starts with flags while the upstream is away.

Unleash Edge keeps `unleash_features.json`, a list of environments with their documents, and `unleash_tokens.json`, the tokens that
it knows. The reference keeps one document in `unleash-backup-NAME.json` in the folder for temporary files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from flagsvc.cli.documents import decode_document, read_file
from flagsvc.cli.migrating.edge import file_place
from flagsvc.cli.migrating.edge_tokens import EdgeToken, assign_keys, read_token
from flagsvc.cli.migrating.migration import Migration, Value, read_options
from flagsvc.core.errors import ConfigurationError, DocumentError
from flagsvc.engine.compile import compile_document
from flagsvc.engine.options import CompileOptions
from flagsvc.proxy.configuration import file_path, is_file_url
from flagsvc.proxy.configuration.stores import FileStore, StoredDocument
from flagsvc.proxy.generations.feeds import make_storage_key
from flagsvc.settings.kinds import printable
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.tokens import EVERY_ENVIRONMENT, EVERY_PROJECT, SEVERAL_PROJECTS

FEATURES, TOKENS = "unleash_features.json", "unleash_tokens.json"
SINGLE = "unleash-backup-*.json"
STORAGE = "storage"
DECISIVE = ("flagsvcUrl", "flagsvcApiToken")
"""Options without which the key of the storage is unknown."""
KEYS = {"frontend": "clientKeys", "client": "expServerSideSdkConfig.tokens", "backend": "expServerSideSdkConfig.tokens"}
"""Type of a token → the option that lists such tokens."""
VALID = ("Validated", "Trusted", None)
"""What Edge says of a token that it accepts."""


class KnownToken(NamedTuple):
    """A token that Edge has looked up: its text, type, environment and projects."""

    text: str
    type: str
    environment: str
    projects: frozenset[str]


class Backup(NamedTuple):
    """What a folder holds: documents by environment, `*` for one of any environment, and the tokens that were known."""

    documents: dict[str, dict[str, Any]]
    tokens: list[KnownToken]


class Seeded(NamedTuple):
    """What was stored: the environment (empty for a single environment), the number of its flags, and of malformed flags."""

    environment: str
    flags: int
    malformed: int


def read_backup(folder: str) -> Backup:
    """Return what a folder holds. Raises ConfigurationError if there is no backup, or none that can be read."""
    place = Path(folder)
    if (place / FEATURES).is_file():
        tokens = read_tokens(place / TOKENS) if (place / TOKENS).is_file() else []
        return Backup(read_environments(place / FEATURES), tokens)
    return Backup({EVERY_ENVIRONMENT: read_only_document(place)}, [])


def read_only_document(place: Path) -> dict[str, Any]:
    """Return the document that the reference has kept in a folder. Raises ConfigurationError unless there is exactly one."""
    files = sorted(place.glob(SINGLE)) if place.is_dir() else []
    shown = f"`{printable(str(place), 300)}`"
    if not files:
        raise ConfigurationError([f"no backup in {shown}; looked for {FEATURES} (Unleash Edge) and {SINGLE}"])
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise ConfigurationError([f"several backups in {shown}: {names}; leave the one of this proxy there"])
    return check_document(read_json(files[0]), str(files[0]))


def read_json(path: Path) -> object:
    """Return the value of a JSON file."""
    return decode_document(read_file(str(path)), str(path))


def read_environments(path: Path) -> dict[str, dict[str, Any]]:
    """Return the documents of a list of pairs of environment and document."""
    value = read_json(path)
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list) or not all(is_pair(pair) for pair in pairs):
        raise ConfigurationError([f"`{path}` is no list of environments with their documents"])
    return {name: check_document(document, f"{path}, {printable(name)}") for name, document in pairs}


def is_pair(value: object) -> bool:
    """Return whether a value is a pair of a name and something."""
    return isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str)


def check_document(document: object, where: str) -> dict[str, Any]:
    """Return a client-features document. Raises ConfigurationError if it is none."""
    try:
        compile_document(document, CompileOptions())
    except DocumentError as error:
        raise ConfigurationError([f"`{where}` is no client-features document: {error}"]) from None
    return cast(dict[str, Any], document)


def read_tokens(path: Path) -> list[KnownToken]:
    """Return the tokens of a list that Edge has validated. Entries of another form are left out."""
    value = read_json(path)
    entries = [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
    return [read_entry(each) for each in entries if isinstance(each.get("token"), str) and each.get("status") in VALID]


def read_entry(entry: Mapping[str, Any]) -> KnownToken:
    projects = entry.get("projects")
    names = frozenset(str(each) for each in projects) if isinstance(projects, list) else frozenset()
    environment = entry.get("environment") or read_token(entry["token"]).environment
    return KnownToken(entry["token"], str(entry.get("type") or "").lower(), str(environment), names)


def choose_folder(migration: Migration, into: str | None) -> Path:
    """Return the folder of the storage; the result then names it by its whole path. Raises ConfigurationError without one."""
    if into:
        migration.options.pop(STORAGE, None)
        migration.set(STORAGE, file_place(into), "--into")
    found = str(read_options(migration.options).values[STORAGE])
    if STORAGE not in migration.options or not is_file_url(found):
        raise ConfigurationError(["`--backup` needs a folder that it can write: name it with `--into`"])
    migration.options[STORAGE] = found
    return file_path(found)


def seed(migration: Migration, backup: Backup, folder: Path, *, force: bool) -> list[Seeded]:
    """Store the document of each environment under the key that the proxy will look for.

    Raises ConfigurationError if the backup lacks one, or if one is stored already and `force` is not given. Nothing is stored then.
    """
    store = FileStore(folder)
    found: list[tuple[str, str, dict[str, Any]]] = []
    for name in migration.environments or ("",):
        options = settled(migration.merged(name))
        found.append((name, make_storage_key(options, name), document_of(options.flagsvc_api_token, backup)))
    if not force and any(store.get(key) is not None for _, key, _ in found):
        raise ConfigurationError([f"`{folder}` holds a configuration of this proxy already: `--force` replaces it"])
    for _, key, document in found:
        store.set(key, StoredDocument(json.dumps(document).encode()).pack())
    return [Seeded(name, len(document["features"]), count_malformed(document)) for name, _, document in found]


def settled(options: Mapping[str, Value]) -> ProxyOptions:
    """Return the options of a proxy. Raises ConfigurationError if what its storage depends on is missing, or reads a file."""
    found = read_options(options)
    wrong = [found.problems[name] for name in DECISIVE if name in found.problems]
    if wrong:
        raise ConfigurationError(wrong)
    made = ProxyOptions.of(found.values)
    if is_file_url(made.flagsvc_url):
        raise ConfigurationError(["a proxy that reads a file needs no backup: leave out `--backup`"])
    return made


def count_malformed(document: dict[str, Any]) -> int:
    """Return the number of flags that a proxy will leave out."""
    return len(document["features"]) - len(compile_document(document, CompileOptions()).snapshot.names)


def document_of(token: str, backup: Backup) -> dict[str, Any]:
    """Return the document that a token would get from the upstream. Raises ConfigurationError if the backup has none."""
    scope = read_token(token)
    document = backup.documents.get(EVERY_ENVIRONMENT) or backup.documents.get(scope.environment)
    if document is None:
        names = ", ".join(f"`{printable(name)}`" for name in backup.documents)
        where = f"environment `{printable(scope.environment)}`" if scope.environment else "a token without an environment"
        raise ConfigurationError([f"the backup has nothing for {where}; it has {names or 'no environment'}"])
    projects = projects_of(token, backup.tokens)
    if EVERY_PROJECT in projects:
        return document
    return document | {"features": [each for each in document["features"] if is_of(each, projects)]}


def is_of(feature: object, projects: frozenset[str]) -> bool:
    """Return whether a feature belongs to one of some projects."""
    return isinstance(feature, dict) and feature.get("project") in projects


def projects_of(token: str, known: Iterable[KnownToken]) -> frozenset[str]:
    """Return the projects that a token sees, `*` for all."""
    project = read_token(token).project or EVERY_PROJECT
    if project != SEVERAL_PROJECTS:
        return frozenset({project})
    listed = [each.projects for each in known if each.text == token]
    return listed[0] if listed and listed[0] else frozenset({EVERY_PROJECT})


def list_callers(migration: Migration, known: Sequence[KnownToken]) -> int:
    """List the tokens of callers as keys that are accepted without asking. Return how many are listed."""
    names = migration.environments or {"": migration.options}
    tables = {name: read_token(str(migration.merged(name).get("flagsvcApiToken", ""))) for name in names}
    count = 0
    for option in dict.fromkeys(KEYS.values()):
        callers = [as_edge_token(token) for token in known if KEYS.get(token.type) == option]
        for name, texts in assign_keys(callers, tables).keys.items():
            before = names[name].get(option, [])
            listed = before if isinstance(before, list) else []
            migration.set(option, list(dict.fromkeys([*listed, *texts])), TOKENS, environment=name)
            count += len(texts)
    return count


def as_edge_token(token: KnownToken) -> EdgeToken:
    project = next(iter(token.projects)) if len(token.projects) == 1 else SEVERAL_PROJECTS
    return EdgeToken(token.text, project, token.environment)
