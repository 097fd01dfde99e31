"""Custom activation strategies and context enrichers: what they are, and how they arrive from Python files.

This room knows what an extension must look like and says clearly what is wrong with one that does not. It never
evaluates a toggle and never answers a request: the engine calls strategies, the api calls enrichers.

    strategies   FLAGSVC_CUSTOM_STRATEGIES_FILE, files that export a list named `strategies`
    enrichers    EXP_CUSTOM_ENRICHERS_FILE, files that export a list named `enrichers`
"""

from __future__ import annotations

from flagsvc.engine.strategies import CustomStrategy
from flagsvc.proxy.extensions.enricher import ContextEnricher, checked, enrich, enricher
from flagsvc.proxy.extensions.load import Enrichers, Strategies, load_enrichers, load_strategies
from flagsvc.proxy.extensions.strategy import ContextView, Strategy

__all__ = [
    "ContextEnricher",
    "ContextView",
    "CustomStrategy",
    "Enrichers",
    "Strategies",
    "Strategy",
    "checked",
    "enrich",
    "enricher",
    "load_enrichers",
    "load_strategies",
]
