"""Edge's storage as one URL."""

from __future__ import annotations

import pytest

from flagsvc.cli.migrating.edge_storage import file_place, redis_url, translate_storage
from flagsvc.cli.migrating.migration import About, Migration, Peer

URLS = [
    ({"REDIS_URL": "redis://h"}, "redis://h"),
    ({"REDIS_URL": "rediss://u:p@h:1/2"}, "rediss://u:p@h:1/2"),
    ({"REDIS_URL": "redis://h:1?protocol=resp3"}, "redis://h:1"),
    ({"REDIS_HOST": "h"}, "redis://h"),
    ({"REDIS_HOST": "h:1", "REDIS_SCHEME": "tls"}, "rediss://h:1"),
    ({"REDIS_HOST": "h", "REDIS_PORT": "1", "REDIS_USERNAME": "a b", "REDIS_SECURE": "true"}, "rediss://a%20b@h:1"),
    ({"REDIS_URL": "redis://:p@h", "REDIS_USERNAME": "u"}, "redis://u@h"),
    ({"REDIS_HOST": "[::1]", "REDIS_PORT": "1"}, "redis://[::1]:1"),
    ({"REDIS_URL": "redis+unix:///run/redis.sock"}, "unix:///run/redis.sock"),
    ({"REDIS_URL": "unix:///run/redis.sock?db=2"}, "unix:///run/redis.sock?db=2"),
    ({"REDIS_HOST": "/run/redis.sock", "REDIS_SCHEME": "redis-unix", "REDIS_PORT": "1"}, "unix:///run/redis.sock"),
    ({"REDIS_URL": "redis://h:port"}, "redis://h:port"),
]


@pytest.mark.parametrize(("given", "url"), URLS)
def test_url(given: dict[str, str], url: str) -> None:
    """The parts that Edge has in several variables are one URL. One that cannot be read is left as it is."""
    address = given.get("REDIS_URL") or given["REDIS_HOST"]
    assert redis_url(address, given) == url


def translated(**given: str) -> Migration:
    """Return what some variables mean."""
    migration = Migration(Peer.EDGE)
    translate_storage(given, migration)
    return migration


def test_password_and_timeout() -> None:
    """The password has an option of its own, and the longer time-out counts."""
    found = translated(
        REDIS_HOST="h",
        REDIS_PASSWORD="s3cret",
        REDIS_READ_CONNECTION_TIMEOUT_MILLISECONDS="100",
        REDIS_WRITE_CONNECTION_TIMEOUT_MILLISECONDS="50",
    )
    assert found.options == {"storage": "redis://h", "storagePassword": "s3cret", "storageTimeout": 100}


def test_clusters_and_several_places() -> None:
    """There is one server: a cluster is left out, of several addresses the first is taken, a folder wins."""
    assert translated(REDIS_URL="redis://a", REDIS_MODE="Cluster").options == {}
    several = translated(REDIS_URL="redis://a, redis://b")
    assert several.options == {"storage": "redis://a"} and several.notes[0].about is About.ABSENT
    both = translated(REDIS_URL="redis://a", BACKUP_FOLDER="/b")
    assert both.options == {"storage": "file:///b"} and both.notes[-1].name == "REDIS_URL"


def test_a_wrong_address_is_not_repeated() -> None:
    """What is no address is refused without its password."""
    found = translated(REDIS_URL="redis://:s3cret@h:port")
    assert found.options == {} and not found.complete
    assert "s3cret" not in str(found.notes[0])


@pytest.mark.parametrize(
    ("path", "url"), [("/a b", "file:///a%20b"), ("a", "file:a"), (" /a ", "file:///a"), ("\udcff", "file:\udcff")]
)
def test_file_place(path: str, url: str) -> None:
    """A path is a URL; a relative one stays relative."""
    assert file_place(path) == url
