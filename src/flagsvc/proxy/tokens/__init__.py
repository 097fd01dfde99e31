"""Tokens of callers that only the upstream knows: looked up, kept, stored (behaviour: Tokens looked up upstream).

grants.py       what a token says of itself, and what the upstream says that it opens
bounds.py       what tokens may cost: requests to upstreams, and places to wait
book.py         the tokens that are known, and those that are known to be unknown
lookup.py       asks the upstream within a budget: many tokens at once, each token once at a time
own_secrets.py  the secrets of this process, which no other upstream is asked about
"""

from __future__ import annotations

from flagsvc.proxy.tokens.book import TokenBook
from flagsvc.proxy.tokens.bounds import Budget, UnavailableError, WaitingPlaces
from flagsvc.proxy.tokens.grants import TokenGrant, TokenScope, exact_scope_of_text, scope_of_text
from flagsvc.proxy.tokens.lookup import TokenLookup, TokenStore
from flagsvc.proxy.tokens.own_secrets import OwnSecrets

__all__ = [
    "Budget",
    "OwnSecrets",
    "TokenBook",
    "TokenGrant",
    "TokenLookup",
    "TokenScope",
    "TokenStore",
    "UnavailableError",
    "WaitingPlaces",
    "exact_scope_of_text",
    "scope_of_text",
]
