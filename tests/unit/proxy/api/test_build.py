"""Putting the contract together from the rows."""

from __future__ import annotations

from flagsvc.proxy.api.routes import ROUTES
from support.serving import Serving


def test_every_row_has_its_endpoint() -> None:
    """With everything switched on, every row is an endpoint, and a GET row also has HEAD."""
    resources = Serving(enable_oas=True, enable_all_endpoint=True, base_path="/Base").service.resources
    for row in ROUTES:
        for place in row.places("/Base"):
            endpoints = resources[place.encode()].endpoints
            assert row.method.encode() in endpoints
            assert (b"HEAD" in endpoints) == any(each.path == row.path and each.method == "GET" for each in ROUTES)


def test_paths_are_there_in_lower_case_too() -> None:
    """A path is also found in lower case, for a base path in another case."""
    resources = Serving(base_path="/Base").service.resources
    assert resources[b"/base/proxy"] is resources[b"/Base/proxy"]


def test_labels_have_no_base_path_and_no_duplicates() -> None:
    """Each counter belongs to one method of one template."""
    resources = Serving(base_path="/base").service.resources
    status_counts = {id(each.counts): each.counts for found in resources.values() for each in found.endpoints.values()}
    labels = [(counts.method, counts.route) for counts in status_counts.values()]
    assert len(labels) == len(set(labels))
    assert ("GET", "/proxy") in labels


def test_allow_lists_what_a_resource_takes() -> None:
    """`Allow` has the methods of the resource and OPTIONS."""
    resources = Serving().service.resources
    assert resources[b"/proxy"].allow == b"GET, HEAD, POST, OPTIONS"
    assert resources[b"/proxy/client/register"].allow == b"POST, OPTIONS"
