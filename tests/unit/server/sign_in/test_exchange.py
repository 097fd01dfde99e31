"""One exchange with a provider: what its failures say."""

from __future__ import annotations

import pytest

from flagsvc.server.sign_in.exchange import ProviderError, fetch
from support.processes import free_port


def test_a_failure_shows_no_secret_of_the_address() -> None:
    """A discovery document may name an address with a password or a key in it. The log has the rest of the address."""
    port = free_port()
    with pytest.raises(ProviderError, match=f"127.0.0.1:{port}/token") as failed:
        fetch(f"http://user:secret@127.0.0.1:{port}/token?key=secret")
    assert "secret" not in str(failed.value)
