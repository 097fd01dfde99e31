"""A result as TOML, as variables and as JSON."""

from __future__ import annotations

import tomllib

from flagsvc.cli.migrating.migration import About, Migration, Peer, as_tree, write_toml, write_variables

ODD = 'quote " backslash \\ umlaut ü delete \x7f'


def sample() -> Migration:
    """Return a result with every kind of value."""
    migration = Migration(Peer.EDGE)
    migration.options = {
        "cors.origin": ["https://a.example.com"],
        "expBootstrap.urlHeaders.Authorization": "Bearer s3cret",
        "port": 3063,
        "enableAllEndpoint": True,
        "flagsvcUrl": "https://h/api",
        "upstreamHeaders": ["X-A: 1", "X-B: 2"],
    }
    migration.environments = {"a.b": {"flagsvcApiToken": ODD}, "c": {"expServerSideSdkConfig.tokens": ["x", "y"]}}
    migration.reasons = {"port": "why"}
    migration.note(About.NEEDED, "X", "first\nsecond")
    migration.note(About.CHANGED, "Y", "z")
    return migration


def test_toml() -> None:
    """The text is TOML of the same tree. Comments have reasons and things left to do."""
    text = write_toml(sample())
    tree = tomllib.loads(text)
    assert tree == as_tree(sample())
    assert tree["environments"] == {"a.b": {"flagsvcApiToken": ODD}, "c": {"expServerSideSdkConfig": {"tokens": ["x", "y"]}}}
    assert "port = 3063  # why\n" in text
    assert "# to do: X: first second\n" in text and "Y" not in text
    assert text.index("flagsvcUrl") < text.index("[cors]") < text.index('[environments."a.b"]')


def test_variables() -> None:
    """The variables are ours. A variable of an environment has its name in it. A list of one origin stays a list."""
    lines = write_variables(sample()).splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == [
        "FLAGSVC_URL=https://h/api",
        "FLAGSVC_UPSTREAM_HEADERS=X-A: 1,X-B: 2",
        "ENABLE_ALL_ENDPOINT=true",
        "PORT=3063",
        "CORS_ORIGIN=https://a.example.com,",
        "EXP_BOOTSTRAP_AUTHORIZATION=Bearer s3cret",
        "FLAGSVC_ENVIRONMENTS=a.b,c",
        f"FLAGSVC_A_B_API_TOKEN={ODD}",
        "FLAGSVC_C_EXP_SERVER_SIDE_SDK_CONFIG_TOKENS=x,y",
    ]
