"""What follows from one set of options without a running loop: logger, extensions, and the settings of engine and service.

So every mistake in options and extension files is found here, before anything changes. `generation` builds from it what answers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar

from flagsvc.core.certificates import CertificateFiles
from flagsvc.core.clock import Clock, SystemClock
from flagsvc.core.errors import ConfigurationError, ExtensionError
from flagsvc.core.extras import missing_extra
from flagsvc.core.log import EventLogger, Logger, Secrets, build_logger
from flagsvc.core.tracing import Tracer
from flagsvc.engine.compile import CompileOptions
from flagsvc.engine.strategies import STRATEGIES
from flagsvc.http.client.trust import OWN
from flagsvc.proxy.api.dialects import OFREP
from flagsvc.proxy.api.settings import ServiceSettings
from flagsvc.proxy.extensions import Enrichers, Strategies, load_enrichers, load_strategies
from flagsvc.proxy.tokens import OwnSecrets
from flagsvc.proxy.upstream import Identity, Trust
from flagsvc.settings.defaults import host_name
from flagsvc.settings.network import is_gitlab
from flagsvc.settings.options import KEY_OPTIONS, OPTIONS, ProxyOptions, secrets_of, with_values
from flagsvc.settings.places import Resolved
from flagsvc.settings.rows.callers import LOOKED_UP
from flagsvc.settings.storage import server_at
from flagsvc.settings.tokens import read_exact_scope, read_scope

T = TypeVar("T")

RENAMED = {
    "app_name": "flagsvc_app_name",
    "base_path": "proxy_base_path",
    "server_tokens": "exp_server_side_sdk_config_tokens",
}
"""Field of ServiceSettings → field of the option, where the two have different names."""
EXTENSIONS = ("custom_strategies", "exp_custom_enrichers")
"""The options with custom code."""
CALLERS_ONLY = frozenset(
    {
        *KEY_OPTIONS,
        "flagsvc_api_token",
        "cors_origin",
        "enable_all_endpoint",
        "enricher_failure",
        "enricher_timeout",
        "exp_custom_enrichers",
        "max_staleness",
        "ofrep",
    }
)
"""The options of an environment that its upstream side does not depend on. Of the upstream's token only the scope counts there."""
DECIDING = ("flagsvc_url", "upstream_headers", "project_name", "name_prefix", "tags", "environment")
"""The options that decide which flags a key opens, beside the upstream's token."""
DECIDING_AT_GITLAB = ("flagsvc_app_name", "flagsvc_instance_id")
"""Further ones if the upstream is GitLab, which reads no token."""


class RestartCounter(Protocol):
    """Loops that are restarted when they fail."""

    @property
    def restarts(self) -> int:
        """The number of restarts."""


@dataclass(frozen=True)
class ProxySetup:
    """The setup of a process, or of one of its environments. It never changes, and nothing in it is bound to an event loop.

    `service_log` is the logger of the HTTP service. If there is an access log, it writes at level info too, at every logLevel.
    Both loggers mask `secrets`; `own_secrets` are not shown to upstreams. `loops` are loops of the process, by name, whose
    restarts are reported. `checked_folders` are the storage folders that are checked already.

    The setup of a process has the setups of its `environments`, at least one. Each has a `name`; the only one has an empty
    name. Environments with the same name and an equal `side` have the same upstream side. `resolved` is the source of options
    that were read. `tracer` decides which polls and other requests to the upstreams are traced; None for none.
    """

    options: ProxyOptions
    clock: Clock
    log: EventLogger
    identity: Identity
    strategies: Strategies
    enrichers: Enrichers
    compile_options: CompileOptions
    service_settings: ServiceSettings
    service_log: EventLogger
    secrets: Secrets
    own_secrets: OwnSecrets
    loops: dict[str, RestartCounter] = field(default_factory=dict)
    name: str = ""
    side: object = field(default=None, repr=False)
    environments: tuple[ProxySetup, ...] = ()
    checked_folders: set[str] = field(default_factory=set)
    resolved: Resolved | None = field(default=None, repr=False)
    tracer: Tracer | None = field(default=None, repr=False)

    @property
    def has_pages(self) -> bool:
        """Whether the process has pages, which show what is kept for them alone."""
        return self.options.admin_address is not None and self.options.admin_pages

    @property
    def has_several(self) -> bool:
        """Whether the environments of the process have names."""
        return all(each.name for each in self.environments)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys and tokens of callers of one environment."""
        return (*self.service_settings.client_keys, *self.service_settings.server_tokens)


def make_setup(
    options: ProxyOptions, *, is_worker: bool = False, resolved: Resolved | None = None, tracer: Tracer | None = None
) -> ProxySetup:
    """Return the setup of a process with these options. `is_worker` skips checks and warnings that the parent has done.

    A worker's setup has no environments, and no custom code: the parent tells the environments.

    Raises ExtensionError, with one line for each file or object of custom strategies or enrichers that cannot be used. Raises
    ConfigurationError for certificates towards the upstream that cannot be used, and for a storage whose extra is not
    installed.
    """
    clock = SystemClock()
    secrets = Secrets(secrets_of(options))
    log = make_logger(options, clock, options.log_level, secrets)
    is_separate = options.access_log and options.log_level != "debug"
    service_log = make_logger(options, clock, "info", secrets) if is_separate else log
    if not is_worker:
        check_storage(options)
        make_trust(options).check()
        strategies, enrichers = load_extensions(options)
        warn_of_names(strategies, log)
    else:  # the environments load their custom code; these options are the options of the start
        strategies, enrichers = load_strategies(()), load_enrichers(())
        options = with_values(options, dict.fromkeys(EXTENSIONS, ()))
    setup = ProxySetup(
        options,
        clock,
        log,
        Identity(options.flagsvc_app_name, options.flagsvc_instance_id),
        strategies,
        enrichers,
        make_compile_options(options, strategies),
        make_service_settings(options, strategies),
        service_log,
        secrets,
        OwnSecrets(options),
        resolved=resolved,
        tracer=tracer,
    )
    return setup if is_worker else next_setup(setup, options)


def next_setup(setup: ProxySetup, options: ProxyOptions) -> ProxySetup:
    """Return the setup of a process whose options are these now. The setup of an environment that has not changed is the same.

    Raises what `make_setup` does. The secrets are masked from now on, also if it raises.
    """
    setup.secrets.add(secrets_of(options))
    made = tuple(make_part(setup, each.name, each.options) for each in options.parts)
    settings = make_service_settings(options, setup.strategies)
    identity = setup.identity
    names = options.flagsvc_app_name, options.flagsvc_instance_id
    if (identity.app_name, identity.instance_id) != names:
        identity = Identity(*names)
    return replace(setup, options=options, service_settings=settings, identity=identity, environments=made)


def make_part(process: ProxySetup, name: str, options: ProxyOptions, number: int | None = None) -> ProxySetup:
    """Return the setup of one environment. Its log lines have a field with its name. Raises what `make_setup` does.

    A worker gives the `number` by which the parent knows the upstream side, and skips what the parent has done.
    """
    side = what_decides_the_side(options) if number is None else number
    known = next((each for each in process.environments if each.name == name), None)
    if known is not None and (known.options, known.side) == (options, side):
        return known
    log, service_log = process.log, process.service_log
    if name:
        log, service_log = log.bind(environment=name), service_log.bind(environment=name)
    strategies, enrichers = find_extensions(process, options)
    if number is None:
        if known is None or known.side != side:
            make_trust(options).check()
        if all(strategies is not each.strategies for each in (process, *process.environments)):
            warn_of_names(strategies, log)
    return replace(
        process,
        name=name,
        side=side,
        options=options,
        log=log,
        service_log=service_log,
        identity=Identity(options.flagsvc_app_name, options.flagsvc_instance_id),
        strategies=strategies,
        enrichers=enrichers,
        compile_options=make_compile_options(options, strategies),
        service_settings=make_service_settings(options, strategies),
        loops={},
        environments=(),
    )


def with_keys_of_both(part: ProxySetup, wanted: ProxySetup) -> ProxySetup:
    """Return the setup of an environment that opens only to keys to which another setup opens, too."""
    kept: dict[str, Any] = {
        name: tuple(key for key in getattr(part.options, name) if key in getattr(wanted.options, name)) for name in KEY_OPTIONS
    }
    if wanted.options.token_validation != LOOKED_UP:
        kept["token_validation"] = wanted.options.token_validation
    options = with_values(part.options, kept)
    if options == part.options:
        return part
    return replace(part, options=options, service_settings=make_service_settings(options, part.strategies))


def what_decides_the_side(options: ProxyOptions) -> tuple[object, ...]:
    """Return what the upstream side of an environment depends on.

    A token that does not name its projects and its environment is in doubt: another one may be for other flags.
    """
    rest = (getattr(options, row.field) for row in OPTIONS if row.field not in CALLERS_ONLY)
    return (scope_or_token(options.flagsvc_api_token), *rest)


def what_decides_flags(options: ProxyOptions) -> tuple[object, ...]:
    """Return what decides which flags a key opens. If it is equal for two sets of options, the flags are known to be the same."""
    fields = (*DECIDING, *DECIDING_AT_GITLAB) if is_gitlab(options.flagsvc_url) else DECIDING
    return (scope_or_token(options.flagsvc_api_token), *(getattr(options, name) for name in fields))


def scope_or_token(token: str) -> object:
    """Return the scope that a token names exactly, else the token."""
    return read_exact_scope(token) or token


def find_extensions(process: ProxySetup, options: ProxyOptions) -> tuple[Strategies, Enrichers]:
    """Return the custom strategies and enrichers of an environment. If another environment has the same files, they are shared."""
    for each in process.environments or (process,):
        if all(getattr(each.options, name) == getattr(options, name) for name in EXTENSIONS):
            return each.strategies, each.enrichers
    return load_extensions(options)


def warn_of_names(strategies: Strategies, log: Logger) -> None:
    """Log each custom strategy that has the name of a built-in one."""
    for name in sorted(strategies.by_name.keys() & STRATEGIES.keys()):
        log.warn("a custom strategy takes the place of the built-in one of its name", strategy=name)


def check_storage(options: ProxyOptions) -> None:
    """Raise ConfigurationError if the storage is a Redis or Valkey server and its extra is not installed."""
    if server_at(options.storage) is not None and (problem := missing_extra("redis")):
        raise ConfigurationError([f"storage: {problem}"])


def count_loop_restarts(setup: ProxySetup) -> dict[str, int]:
    return {name: loop.restarts for name, loop in setup.loops.items()}


def make_logger(options: ProxyOptions, clock: Clock, level: str, secrets: Secrets) -> EventLogger:
    """Return the logger of the options, which writes at `level` and above."""
    return build_logger(options.logger, level=level, as_json=options.use_json_logger, clock=clock, secrets=secrets)


def make_trust(options: ProxyOptions) -> Trust:
    """Return the trusted authorities and the client certificate for connections to the upstream."""
    cert, key, password = options.upstream_cert, options.upstream_key, options.upstream_key_password
    own = None if cert is None else CertificateFiles(OWN, cert, key, password)
    return Trust(options.http_options_reject_unauthorized, options.upstream_ca, own)


def load_extensions(options: ProxyOptions) -> tuple[Strategies, Enrichers]:
    """Return the custom strategies and enrichers. Raises ExtensionError with the problems of both."""
    problems: list[str] = []

    def attempt(load: Callable[[Iterable[object]], T], sources: Iterable[object]) -> T:
        try:
            return load(sources)
        except ExtensionError as error:
            problems.append(str(error))
            return load(())

    strategies = attempt(load_strategies, options.custom_strategies)  # type: ignore[arg-type]
    enrichers = attempt(load_enrichers, options.exp_custom_enrichers)  # type: ignore[arg-type]
    if problems:
        raise ExtensionError("\n".join(problems))
    return strategies, enrichers


def make_compile_options(options: ProxyOptions, strategies: Strategies) -> CompileOptions:
    return CompileOptions(
        hash_encoding=options.hash_encoding,
        hostname=host_name(os.environ),
        variant_feature_state=options.variant_feature_state,
        custom_strategies=strategies.by_name,
        project=options.project_name,
        name_prefix=options.name_prefix,
        code_digest=strategies.digest,
        class_bytes=options.class_cache_bytes,
    )


def make_service_settings(options: ProxyOptions, strategies: Strategies) -> ServiceSettings:
    made = {
        "custom_strategies": tuple(strategies.by_name),
        "dialects": (*options.dialects, OFREP.name),
        "upstream_environment": environment_of(options.flagsvc_api_token) or options.environment or "default",
    }
    names = [each.name for each in fields(ServiceSettings) if each.name not in made]
    return ServiceSettings(**made | {name: getattr(options, RENAMED.get(name, name)) for name in names})


def environment_of(token: str) -> str:
    """Return the environment that a token names, as in `project:environment.secret`; empty if it names none."""
    named = read_scope(token)
    return "" if named is None else named.environment
