"""Favourites: the star of a flag, and whether the list of flags shows the caller's favourites first, which a cookie remembers."""

from __future__ import annotations

from dataclasses import replace

from flagsvc.http.answers import Answer
from flagsvc.http.call import COOKIE
from flagsvc.pages.headers import keep_choice, read_cookie
from flagsvc.pages.site import redirect
from flagsvc.server.api.authorization import PAGES
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Handler
from flagsvc.server.pages.page import change
from flagsvc.server.pages.sign_in import local_page
from flagsvc.server.store.checks import Json
from flagsvc.server.store.errors import not_found
from flagsvc.server.store.resources import favorites, feature_search, features
from flagsvc.server.store.resources.feature_search import FeatureSearch
from flagsvc.server.store.store import Tx

COOKIE_NAME = "flagsvc-favourites"
MIXED = "mixed"


def search(call: ApiCall, tx: Tx, wanted: FeatureSearch) -> Json:
    """Return what a search finds, with `favorite` for each flag, and `favourites_first`: None for who has no favourites."""
    mine = favorites.names_of(tx, call.actor)
    first = read_cookie(call.head.other(COOKIE), COOKIE_NAME) != MIXED if mine else None
    found = feature_search.search(tx, replace(wanted, first_of=call.actor.id) if first else wanted)
    for each in found["features"]:
        each["favorite"] = each["name"] in mine
    return found | {"favourites_first": first}


def star(*, is_favorite: bool) -> Handler:
    """Return a handler that stars a flag or takes the star away, and goes back."""

    def handler(call: ApiCall) -> Answer:
        name = call.params["featureName"]
        with call.store.recording(call.actor) as tx:
            row = features.find(tx, name)
            if row is None:
                raise not_found(f"There is no flag {name}")
            (favorites.add if is_favorite else favorites.remove)(tx, call.actor, row.project, name)
        return redirect(f"{call.root}{PAGES}{local_page(call.form.text('back'))}")

    return handler


def choose(call: ApiCall) -> Answer:
    """Keep in this browser whether the list shows favourites first, and go back."""
    pages = f"{call.root}{PAGES}"
    kept = "" if call.form.text("first") == "yes" else MIXED
    return redirect(f"{pages}{local_page(call.form.text('back'))}", keep_choice(COOKIE_NAME, kept, pages))


ROUTES = (
    change("/flags/:featureName/favourite/on", star(is_favorite=True), stands_for="addFavoriteFeature"),
    change("/flags/:featureName/favourite/off", star(is_favorite=False), stands_for="removeFavoriteFeature"),
    change("/favourites", choose, reads=True, summary="Choose whether the list of flags shows favourites first."),
)
