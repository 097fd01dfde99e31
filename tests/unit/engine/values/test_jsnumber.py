"""Numbers as JavaScript reads and writes them. Values of JSON become texts, numbers and booleans as node converts them."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

import pytest

from flagsvc.engine.values import jsnumber, text
from flagsvc.engine.values.jsvalue import MISSING, is_true, number_of, text_of
from support import javascript

READ = [
    ("0", 0.0), ("7", 7.0), ("-1.5", -1.5), ("+.5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("1E+3", 1000.0),
    ("2.5e-1", 0.25), ("", 0.0), ("   ", 0.0), (" \n 12\t", 12.0), ("\ufeff1\u00a0\u2003\u3000", 1.0), ("0x1F", 31.0),
    ("0XaB", 171.0), ("0o17", 15.0), ("0b11", 3.0), (" 0x10 ", 16.0), ("Infinity", math.inf), ("+Infinity", math.inf),
    ("-Infinity", -math.inf), (" Infinity ", math.inf), ("1e400", math.inf), ("-1e400", -math.inf), ("1e-400", 0.0),
    ("0010", 10.0), ("0x" + "f" * 256, math.inf), ("0x" + "0" * 300 + "1", 1.0),
    ("9007199254740993", 9007199254740992.0),
]  # fmt: skip

NO_NUMBERS = [
    "1_0", "inf", "nan", "NaN", "infinity", "INFINITY", "- 1", "1 2", "1,5", "e3", ".", "+", "-", "+.", ".e1", "1e",
    "1e+", "1ee1", "1.2.3", "0x", "0xg", "-0x10", "+0b1", "0b2", "0o8", "0x1.8", "0x_1", "1n", "\u0661", "\u00851",
    "1\u001c", "\u180e1", "--1", "true", "\ud800", "1\0",
]  # fmt: skip

WRITTEN = [
    (0.0, "0"), (-0.0, "0"), (1.0, "1"), (1.5, "1.5"), (-2.25, "-2.25"), (1e20, "100000000000000000000"),
    (1e21, "1e+21"), (1.5e300, "1.5e+300"), (-1.25e21, "-1.25e+21"), (1e-6, "0.000001"), (1.5e-6, "0.0000015"),
    (1e-7, "1e-7"), (-1.2e-7, "-1.2e-7"), (123456789012345680000.0, "123456789012345680000"),
    (2.0**53, "9007199254740992"), (0.1, "0.1"), (5e-324, "5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"), (9007199254740991.0, "9007199254740991"),
    (4503599627370495.5, "4503599627370495.5"), (math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "number"), READ)
def test_reads_what_number_reads(written: str, number: float) -> None:
    """Every form that Number() accepts gives the same double."""
    assert jsnumber.parse(written) == number


def test_keeps_the_sign_of_zero() -> None:
    """A negative zero stays one, as in the reference; it compares equal to 0 all the same."""
    assert math.copysign(1, jsnumber.parse("-0")) == -1 and math.copysign(1, jsnumber.parse("")) == 1


@pytest.mark.parametrize("written", NO_NUMBERS)
def test_gives_nan_for_what_is_no_number(written: str) -> None:
    """What Number() does not take is NaN: the forms that only Python reads too."""
    assert math.isnan(jsnumber.parse(written))


@pytest.mark.parametrize(("number", "written"), WRITTEN)
def test_writes_what_string_writes(number: float, written: str) -> None:
    """The text is that of String(number)."""
    assert jsnumber.to_text(number) == written


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0, "0"), (-7, "-7"), (2**53, "9007199254740992"), (2**53 + 1, "9007199254740992"),
        (-(2**53) - 3, "-9007199254740996"), (10**21, "1e+21"),
        (123456789012345678901234567890, "1.2345678901234568e+29"), (10**400, "Infinity"), (-(10**400), "-Infinity"),
    ],
)  # fmt: skip
def test_integers_of_a_json_text_pass_through_a_double(number: int, written: str) -> None:
    """An integer is exact up to 2**53 and the nearest double beyond."""
    assert jsnumber.to_text(jsnumber.from_int(number)) == written


def odd_numbers(draw: random.Random) -> str:
    """Return something that is a number or nearly one."""
    alphabet = "0123456789" * 3 + "+-..eExXoObB_ aAfFInity\u00a0\ufeff\n"
    shapes = [
        lambda: repr(struct.unpack("d", draw.randbytes(8))[0]),
        lambda: str(draw.randint(-(10**25), 10**25)),
        lambda: f"{draw.randint(0, 99)}.{draw.randint(0, 10**12)}e{draw.randint(-340, 320)}",
        lambda: (
            draw.choice(["0x", "0X", "0b", "0B", "0o", "0O"])
            + "".join(draw.choice("01234567aFg_") for _ in range(draw.randint(0, 30)))
        ),
        lambda: "".join(draw.choice(alphabet) for _ in range(draw.randint(0, 7))),
        lambda: draw.choice(text.SPACES) + str(draw.randint(0, 99)) + draw.choice(text.SPACES + "\x85\x1c\u180e\u200b"),
        lambda: "0x" + "".join(draw.choice("0123456789abcdef") for _ in range(draw.randint(12, 18))),
    ]
    return draw.choice(shapes)()


@pytest.mark.programs
def test_reads_as_node_reads() -> None:
    """Tens of thousands of generated texts give the same double as node's Number()."""
    draw = random.Random(1)
    texts = [odd_numbers(draw) for _ in range(40_000)]
    answers = javascript.apply("t => { const n = Number(t); return Object.is(n, -0) ? '-0' : String(n) }", texts)
    wrong = [(t, answer) for t, answer in zip(texts, answers, strict=True) if repr(jsnumber.parse(t)) != repr(float(answer))]
    assert not wrong, wrong[:10]


@pytest.mark.programs
def test_writes_as_node_writes() -> None:
    """Tens of thousands of random doubles, of every size, are written as node's String() writes them."""
    draw = random.Random(2)
    doubles = [struct.unpack("d", draw.randbytes(8))[0] for _ in range(20_000)]
    doubles += [draw.randint(-(10**18), 10**18) / 10 ** draw.randint(0, 25) for _ in range(20_000)]
    doubles += [float(sign * (10**power + step)) for sign in (-1, 1) for power in range(25) for step in (-1, 0, 1)]
    finite = [number for number in doubles if math.isfinite(number)]
    answers = javascript.apply("n => String(n)", finite)
    wrong = [(number, answer) for number, answer in zip(finite, answers, strict=True) if jsnumber.to_text(number) != answer]
    assert not wrong, wrong[:10]


VALUES: list[Any] = [
    *(None, True, False, 0, 1, -5, 333.3, 1e300, 1e21, 10**20, -0.0),
    *("", " ", "500", " 5 ", "0x10", "x", "true", "null", "1e3"),
    *([], [None], [[]], [[], [1]], [1, [2, [3, None]], "x"], ["userId"], [50], [True], [{}], {}, {"a": 1}),
]


def test_values_are_those_of_node() -> None:
    """Text, number and truth of each value are equal; NaN and infinities are compared by their names."""
    function = "x => [String(x), String(Number(x)), Boolean(x), String(Object.is(Number(x), NaN))]"
    for value, (written, number, truth, is_nan) in zip(VALUES, javascript.apply(function, VALUES), strict=True):
        assert (text_of(value), is_true(value)) == (written, truth), value
        assert math.isnan(number_of(value)) if is_nan == "true" else number_of(value) == float(number), value


def test_what_is_missing() -> None:
    """It is `undefined`: false, and no number. Null is zero."""
    assert (text_of(MISSING), is_true(MISSING)) == ("undefined", False)
    assert math.isnan(number_of(MISSING)) and number_of(None) == 0


def test_a_deep_list_is_read_without_recursion() -> None:
    """A list in lists may be as deep as a document."""
    deep: list[Any] = [1]
    for _ in range(100_000):
        deep = [deep]
    assert text_of(deep) == "1"
    while deep and isinstance(deep[0], list):
        deep = deep[0]
