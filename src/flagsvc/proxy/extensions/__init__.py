"""Custom activation strategies and context enrichers: their interfaces, and how they are loaded from Python files.

This package checks extensions and explains what is wrong with an invalid one. It does not evaluate toggles or answer requests: the
engine calls strategies, and the api calls enrichers.

    strategies   FLAGSVC_CUSTOM_STRATEGIES_FILE, files that export a list named `strategies`
    enrichers    EXP_CUSTOM_ENRICHERS_FILE, files that export a list named `enrichers`
"""

from __future__ import annotations

from flagsvc.engine.strategies import CustomStrategy
from flagsvc.proxy.extensions.enricher import ContextEnricher, check_result, enrich, enricher
from flagsvc.proxy.extensions.load import Enrichers, Strategies, load_enrichers, load_strategies
from flagsvc.proxy.extensions.strategy import ContextView, Strategy

__all__ = [
    "ContextEnricher",
    "ContextView",
    "CustomStrategy",
    "Enrichers",
    "Strategies",
    "Strategy",
    "check_result",
    "enrich",
    "enricher",
    "load_enrichers",
    "load_strategies",
]
