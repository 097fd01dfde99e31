"""`/api/admin/addons`: webhooks, as on the real server, whose other providers ours does not have (dialects: Addons)."""

from __future__ import annotations

from functools import partial

from flagsvc.http.answers import Answer
from flagsvc.http.route import Parameter
from flagsvc.http.shapes import Anything, Array, Boolean, Enum, Integer, Map, Named, Nullable, Object, String
from flagsvc.server.api.call import ApiCall
from flagsvc.server.api.route import Route, by_path, reading, row_id, writing
from flagsvc.server.shapes.features import MOMENT
from flagsvc.server.store.errors import bad_data
from flagsvc.server.webhooks import addons
from flagsvc.server.webhooks.addons import list_deliveries
from flagsvc.server.webhooks.provider import describe_provider

CREATE, UPDATE, DELETE = "CREATE_ADDON", "UPDATE_ADDON", "DELETE_ADDON"
MOST, DEFAULT_LIMIT = 100, 50
NAMES = Array(String())
GIVEN = {
    "provider": String(description="Always `webhook` here.", example="webhook"),
    "description": String(description="What it is for.", example="Tells the chat of the team"),
    "enabled": Boolean(description="Whether events are sent. What waits is sent when it is enabled again."),
    "parameters": Map(
        Anything(),
        description="The parameters of the provider. A sensitive one is `*****` in answers; sent back, that keeps its value.",
        example={"url": "https://hooks.example.com/flags"},
    ),
    "events": Array(String(), description="The types of events that are sent.", example=["feature-created"]),
    "projects": Array(String(), description="Only events of these projects, or of none; all without any."),
    "environments": Array(String(), description="Only events of these environments, or of none; all without any."),
}
BODY = Named(
    "addonCreateUpdateSchema",
    Object(GIVEN, required=("provider", "enabled", "parameters", "events"), description="The settings of a webhook."),
)
PROGRESS = Object(
    {
        "waiting": Integer(minimum=0, description="How many deliveries wait for an attempt."),
        "dropped": Integer(minimum=0, description="For how many events the queue had no room."),
        "lastSuccessAt": Nullable(MOMENT),
        "lastFailureAt": Nullable(MOMENT, description="When a delivery was given up."),
        "lastError": Nullable(String(), description="What went wrong in the last delivery that had an error."),
        "eventsWithoutProject": Boolean(
            description="Whether events without a project are sent: an administrator or an admin token changed it last."
        ),
    },
    required=("waiting", "dropped", "lastSuccessAt", "lastFailureAt", "lastError", "eventsWithoutProject"),
)
ADDON = Named(
    "addonSchema",
    Object(
        {"id": Integer(minimum=1), **GIVEN}
        | {
            "description": Nullable(GIVEN["description"]),
            "createdAt": MOMENT,
            "updatedAt": MOMENT,
            "deliveries": PROGRESS,
        },
        required=("id", "provider", "enabled", "description", "parameters", "events", "projects", "environments"),
        description="A webhook.",
    ),
)
PARAMETER = Object(
    {
        "name": String(),
        "displayName": String(),
        "description": String(),
        "type": Enum("url", "text", "textfield"),
        "placeholder": String(),
        "required": Boolean(),
        "sensitive": Boolean(description="Whether answers mask the value."),
    },
    required=("name", "displayName", "type", "required", "sensitive"),
)
PROVIDER = Named(
    "addonTypeSchema",
    Object(
        {
            "name": String(),
            "displayName": String(),
            "documentationUrl": String(),
            "description": String(),
            "parameters": Array(PARAMETER),
            "events": NAMES,
        },
        required=("name", "displayName", "documentationUrl", "description"),
        description="A provider of addons.",
    ),
)
ALL = Named(
    "addonsSchema",
    Object({"addons": Array(ADDON), "providers": Array(PROVIDER)}, required=("addons", "providers")),
)
DETAILS = Object(
    {
        "deliveryId": String(description="What the receiver gets in the header webhook-id."),
        "attempts": Integer(minimum=0),
        "status": Nullable(Integer(), description="The status of the last answer."),
        "endedAt": Nullable(MOMENT),
        "dueAt": Nullable(MOMENT, description="When the next attempt is due."),
    },
    required=("deliveryId", "attempts", "status", "endedAt", "dueAt"),
)
DELIVERY = Object(
    {
        "id": String(pattern="^[0-9]+$"),
        "integrationId": Integer(),
        "createdAt": MOMENT,
        "state": Enum("success", "failed", "waiting"),
        "stateDetails": String(description="The state in words."),
        "event": Nullable(Object({}), description="What is sent, as the list of events has it; null for one that is deleted."),
        "details": DETAILS,
    },
    required=("id", "integrationId", "createdAt", "state", "stateDetails", "event", "details"),
)
DELIVERIES = Named(
    "integrationEventsSchema",
    Object({"integrationEvents": Array(DELIVERY)}, required=("integrationEvents",), description="Deliveries of a webhook."),
)


def test(call: ApiCall) -> Answer:
    """Queue a test of a webhook."""
    number = row_id(call)
    with call.store.recording(call.actor) as tx:
        addons.queue_test(tx, number)
    return Answer(None, 202)


def show_deliveries(call: ApiCall) -> Answer:
    if not call.params["id"].isdecimal():
        raise bad_data("Invalid integration configuration id")
    number = row_id(call)
    limit, offset = read_bound(call, "limit", DEFAULT_LIMIT), read_bound(call, "offset", 0)
    with call.store.reading() as tx:
        found = list_deliveries(tx, number, limit if limit <= MOST else DEFAULT_LIMIT, offset)
    return Answer({"integrationEvents": found})


def read_bound(call: ApiCall, name: str, default: int) -> int:
    """Return a number of the query; the default for what is none above 0, as on the real server."""
    text = call.first_value(name) or ""
    return int(text) if text.isdecimal() and len(text) < 10 and int(text) > 0 else default


PATH = "/api/admin/addons"
route = partial(Route, tag="Addons")

ROUTES = (
    route(
        path=PATH,
        handler=reading(lambda tx, call: {"addons": addons.list_addons(tx), "providers": [describe_provider()]}),
        operation="getAddons",
        summary="List webhooks, and the provider with its parameters and events",
        result=ALL,
    ),
    route(
        path=PATH,
        method="POST",
        handler=writing(by_path(addons.create)),
        operation="createAddon",
        summary="Create a webhook",
        permission=CREATE,
        body=BODY,
        status=201,
        result=ADDON,
    ),
    route(
        path=f"{PATH}/:id",
        handler=reading(by_path(addons.find)),
        operation="getAddon",
        summary="Show a webhook",
        result=ADDON,
    ),
    route(
        path=f"{PATH}/:id",
        method="PUT",
        handler=writing(by_path(addons.change)),
        operation="updateAddon",
        summary="Replace the settings of a webhook",
        description="A parameter that is not sent is removed. A masked one keeps its value.",
        permission=UPDATE,
        body=BODY,
        result=ADDON,
    ),
    route(
        path=f"{PATH}/:id",
        method="DELETE",
        handler=writing(by_path(addons.remove)),
        operation="deleteAddon",
        summary="Delete a webhook",
        description="What it has not sent is deleted, too.",
        permission=DELETE,
    ),
    route(
        path=f"{PATH}/:id/test",
        method="POST",
        handler=test,
        operation="testAddon",
        summary="Send a test event with a webhook",
        description="It is sent once, within a second, and changes nothing. Only ours has this.",
        permission=UPDATE,
        status=202,
    ),
    route(
        path=f"{PATH}/:id/events",
        handler=show_deliveries,
        operation="getIntegrationEvents",
        summary="List the deliveries of a webhook",
        description="The newest first.",
        query=(
            Parameter("limit", "The most deliveries, 1 to 100; 50 without it."),
            Parameter("offset", "How many of the newest to leave out."),
        ),
        permission="ADMIN",
        result=DELIVERIES,
    ),
)
