"""Puts the pages of a process together: what they show of each environment, and who may see them.

Only a proxy with `adminAddress` imports it.
"""

from __future__ import annotations

from flagsvc.http.client.addresses import shown
from flagsvc.http.contract import Contract
from flagsvc.http.trust import TrustedProxies
from flagsvc.pages.sign_in_tries import SignInTries
from flagsvc.proxy.generation import Generations
from flagsvc.proxy.pages.access import Access
from flagsvc.proxy.pages.desk import PagesContract
from flagsvc.proxy.pages.page import TEMPLATES
from flagsvc.proxy.pages.recorder import ReadCounts
from flagsvc.proxy.pages.rows import make_rows
from flagsvc.proxy.pages.scene import Scene, ShownEnvironment
from flagsvc.proxy.setup import ProxySetup
from flagsvc.proxy.upstream_sync import UpstreamSync


def make_desk(generations: Generations, read_counts: ReadCounts) -> Contract:
    """Return the contract of the operators' address: the service for operators, and pages unless the option is off.

    `read_counts` returns the counters of all processes that answer callers.
    """
    setup, service = generations.setup, generations.operators
    options = setup.options
    if options.admin_address is None or not options.admin_pages:
        return service
    tries, trust = SignInTries(setup.clock, service.reached), TrustedProxies(options.trust_proxy)
    access = Access(options.admin_address, options.admin_page_keys, setup.clock, tries, trust)
    scene = Scene(
        app_name=setup.identity.app_name,
        instance=setup.identity.instance_id,
        clock=setup.clock,
        log=setup.service_log,
        secrets=setup.secrets,
        readiness=service.readiness,
        workers=generations.sources.worker_pool,
        list_environments=lambda: {
            each.name: show(each.setup, each.feed) for each in generations if isinstance(each.feed, UpstreamSync)
        },
        read_counts=read_counts,
        resolved=setup.resolved,
        started=setup.clock.now(),
    )
    TEMPLATES.load()
    return PagesContract(service, scene, access, make_rows(scene, access), service.settings.base_path)


def show(setup: ProxySetup, feed: UpstreamSync) -> ShownEnvironment:
    """Return what the pages show of an environment."""
    return ShownEnvironment(
        name=setup.name,
        upstream=shown(setup.options.flagsvc_url),
        holder=feed.holder,
        notes=feed.poller.notes,
        asked=feed.counters,
        changes=feed.changes,
        settings=setup.service_settings,
        compile_options=setup.compile_options,
        enrichers=setup.enrichers.functions,
    )
