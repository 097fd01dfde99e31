"""What a value looks like: pure rows, no I/O (import validation 2; 2.1; 2.2; 3).

A row says what a value must look like. `check` coerces the value as the real server does and reports the first violation,
`json_schema` and `components` write the same rows as OpenAPI 3.1 schemas.

    TAG = Named(
        "tagSchema",
        Object(
            {
                "value": String(min_length=2, max_length=50, description="The value of the tag.", example="web"),
                "type": String(min_length=2, max_length=50),
                "color": Nullable(String(pattern="^#[0-9A-Fa-f]{6}$")),
            },
            required=("value", "type"),
            closed=True,
        ),
    )
    tag = check(TAG, {"value": 12, "type": "simple"})        # {"value": "12", "type": "simple"}
    check(TAG, {"type": "simple"})                           # ShapeError; .details == [{"path": "/body/value", "message": …}]

The rows:

    String(min_length=, max_length=, pattern=, format="date-time" or "date")    lengths in code points
    Number(minimum=, maximum=)    Integer(minimum=, maximum=)                   whole numbers come as int
    Boolean()    Enum("a", "b")    Anything()
    Array(items, min_items=, max_items=)
    Object({name: shape}, required=("name",), closed=False, rest=None)          properties are checked in the order given;
                                                                                `rest` is the shape of further properties
    Record(…)                     an Object whose schema lists the properties first
    Map(values)                   an object of any keys with values of one shape; Members(values) checks them as they came
    Nullable(shape)    Named("componentName", shape)
    OrNull(shape)                                                               a value that does not conform becomes null
    AnyOf(shape, shape, base=Object())    OneOf(shape, shape)                   `base` holds besides; its type is checked first

Each but Named takes `description=` and `example=`, which only OpenAPI shows. Objects and arrays are coerced in place: give
`check` a body that is yours. A number may be an infinity (1e400, `"Infinity"`): the real server lets it pass. The module
`exact` has rows that take a value as it stands.
"""

from flagsvc.http.shapes.alternatives import AnyOf, OneOf
from flagsvc.http.shapes.checking import check, components, json_schema
from flagsvc.http.shapes.containers import Array, Map, Members, Object, Record
from flagsvc.http.shapes.scalars import Boolean, Enum, Integer, Number, String
from flagsvc.http.shapes.shape import Anything, Named, Nullable, OrNull, Schema, Shape
from flagsvc.http.shapes.violation import Detail, ShapeError

__all__ = [
    "AnyOf",
    "Anything",
    "Array",
    "Boolean",
    "Detail",
    "Enum",
    "Integer",
    "Map",
    "Members",
    "Named",
    "Nullable",
    "Number",
    "Object",
    "OneOf",
    "OrNull",
    "Record",
    "Schema",
    "Shape",
    "ShapeError",
    "String",
    "check",
    "components",
    "json_schema",
]
