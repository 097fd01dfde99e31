"""Tokens of callers that only the upstream knows: looked up, kept, stored (behaviour: Tokens looked up upstream).

book.py    what a token opens, and which tokens the upstream knows or does not know
lookup.py  asks the upstream within a budget: many tokens at once, each token once at a time, and no secret of this process

`Router` of the API chooses what asks; `TokenDirectory` in `proxy/generations/admission.py` chooses the upstream. A worker asks its
parent (`proxy/workers/parent_tokens.py`).
"""

from __future__ import annotations

from flagsvc.proxy.tokens.book import Admission, TokenBook, TokenGrant, TokenScope, exact_scope_of_text, scope_of_text
from flagsvc.proxy.tokens.lookup import Budget, OwnSecrets, TokenLookup, UnavailableError, WaitingPlaces

__all__ = [
    "Admission",
    "Budget",
    "OwnSecrets",
    "TokenBook",
    "TokenGrant",
    "TokenLookup",
    "TokenScope",
    "UnavailableError",
    "WaitingPlaces",
    "exact_scope_of_text",
    "scope_of_text",
]
