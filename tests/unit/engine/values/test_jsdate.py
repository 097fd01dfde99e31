"""Dates as JavaScript reads and writes them. The expectations were observed on node; the random ones ask it again."""

from __future__ import annotations

import datetime
import math
import random
import zoneinfo

import pytest

from flagsvc.engine.values import jsdate
from support import javascript, needs

READ = [
    ("2022-01-22T14:00:00.000Z", "2022-01-22T14:00:00.000"), ("2022-01-22T14:00Z", "2022-01-22T14:00:00.000"),
    ("2022", "2022-01-01T00:00:00.000"), ("2022-03", "2022-03-01T00:00:00.000"),
    ("2022-01-22", "2022-01-22T00:00:00.000"), ("2022-01-22T14:00", "2022-01-22T14:00:00.000"),
    ("2022-01-22t14:00:05z", "2022-01-22T14:00:05.000"), ("2022-01-22T14:00:00+02:30", "2022-01-22T11:30:00.000"),
    ("2022-01-22T14:00:00-0230", "2022-01-22T16:30:00.000"), ("2022-01-22T14:00:00.5", "2022-01-22T14:00:00.500"),
    ("2022-01-22T14:00:00.12", "2022-01-22T14:00:00.120"),
    ("2022-01-22T14:00:00.123456789012", "2022-01-22T14:00:00.123"),
    ("2022-01-22T14:00:00.0000000001", "2022-01-22T14:00:00.000"), ("2022-01-22T24:00", "2022-01-23T00:00:00.000"),
    ("2022-01-22T24:00:00.000", "2022-01-23T00:00:00.000"), ("2022-02-31", "2022-03-03T00:00:00.000"),
    ("+002022-01-22", "2022-01-22T00:00:00.000"), ("0001-01-01", "0001-01-01T00:00:00.000"),
    ("2022-01-22 14:00", "2022-01-22T14:00:00.000"), ("2022-1-2", "2022-01-02T00:00:00.000"),
    ("2022/01/22", "2022-01-22T00:00:00.000"), ("01/22/2022", "2022-01-22T00:00:00.000"),
    ("Jan 22 2022", "2022-01-22T00:00:00.000"), ("22 January 2022", "2022-01-22T00:00:00.000"),
    ("2022 Jan 22", "2022-01-22T00:00:00.000"), ("22-Jan-2022", "2022-01-22T00:00:00.000"),
    ("Sept 5, 1999", "1999-09-05T00:00:00.000"), ("Sat, 22 Jan 2022 14:00:00 GMT", "2022-01-22T14:00:00.000"),
    ("22 January 2022 14:00 PST", "2022-01-22T22:00:00.000"),
    ("22 January 2022 14:00 EDT", "2022-01-22T18:00:00.000"),
    ("Jan 22 2022 14:00 GMT+0200", "2022-01-22T12:00:00.000"),
    ("Sat Jan 22 2022 14:00:00 GMT+0100 (CET (winter))", "2022-01-22T13:00:00.000"),
    ("Jan 22 2022 14:00 +2", "2022-01-22T12:00:00.000"), ("Jan 22 2022 14:00 -230", "2022-01-22T16:30:00.000"),
    ("Jan 22 2022 14:00 +2:30", "2022-01-22T11:30:00.000"), ("Jan 22 2022 14:00 +02:", "2022-01-22T12:00:00.000"),
    ("Jan 22 2022 GMT-8", "2022-01-22T08:00:00.000"), ("1/2/2003 5:06 PM", "2003-01-02T17:06:00.000"),
    ("1/2/2003 5:06:07 am", "2003-01-02T05:06:07.000"), ("1/2/2003 12:00 AM", "2003-01-02T00:00:00.000"),
    ("1/2/2003 12:00 PM", "2003-01-02T12:00:00.000"), ("1/2/2003 1:02:03.4", "2003-01-02T01:02:03.400"),
    ("-000000-01-01", "2001-01-01T00:00:00.000"), ("1/2/2003 10::30", "2003-01-02T10:00:30.000"),
    ("1/2/2003 10:.30", "2003-01-02T10:30:00.000"), ("1/2/2003 24:00", "2003-01-03T00:00:00.000"),
    ("5", "2001-05-01T00:00:00.000"), ("Jan 22", "2001-01-22T00:00:00.000"), ("Jan 1234", "1234-01-01T00:00:00.000"),
    ("32", "2032-01-01T00:00:00.000"), ("1/1/49", "2049-01-01T00:00:00.000"), ("1/1/50", "1950-01-01T00:00:00.000"),
    ("1/1/99", "1999-01-01T00:00:00.000"), ("1/1/100", "0100-01-01T00:00:00.000"), ("0", "2000-01-01T00:00:00.000"),
    (" 2000-01-01", "2000-01-01T00:00:00.000"), ("2000-01-01 ", "2000-01-01T00:00:00.000"),
    ("\u00a02000-01-01 (never closed", "2000-01-01T00:00:00.000"), ("on 5/6/2007", "2007-05-06T00:00:00.000"),
    ("+5/6/2007", "2007-05-06T00:00:00.000"), ("2022\0 anything", "2022-01-01T00:00:00.000"),
]  # fmt: skip

NO_DATES = [
    "", " ", "tomorrow", "Jan", "22", "14:00", "2022-13-01", "2022-01-32", "2022-00-01", "2022-01-22T",
    "2022-01-22T14", "2022-01-22T25:00", "2022-01-22T14:60", "2022-01-22T14:00:60", "2022-01-22T14:00.5",
    "2022-01-22T14:00:00.", "2022-01-22T24:01", "2022-01-22T24:00:01", "2022-01-22T24:00:00.001",
    "2022-01-22T14:00Zx", "2022-01-22T14:00 Z", "2022-01-22T14:00+2", "2022-01-22T14:00+02", "2022-01-22T14:00+02:60",
    "2022-01-22T14:00+2400", "2022-01-22T14:00+0260", "2022-01-22T14:00+24:00", "-000000", "1/2/2003 1:02:03. 4",
    "2022-1-22T14:00", "1 2 3 4", "1 2 1 2", "Jan 22 2022 14:00)", "22 Jan 2022 x", "x1 Jan 2022",
    "Jan 22 2022 14:00x", "1/2/2003 13:00 PM", "1/2/2003 25:00", "1/2/2003 24:00:01", "1/2/2003 10:61",
    "1/2/2003 10:61:05", "1/2/2003 10:00:61", "1/2/2003 10:00:00:1000", "1/2/2003 1:2:3:4:5", "1/2/2003 1:2::3",
    "1/2/2003 1:02:03.x", "1/2/2003 1:02/3", "Jan 22 2022 14:00 +12345", "Jan 22 2022 14:00 +", "Jan 22 2022 -",
    "Jan 22 2022 14:00 GMT+1193046:00", "1234567890123", "+275760-09-13T00:00:00.001Z", "-271821-04-19", "é", "T",
    "12/32/2000",
]  # fmt: skip


def moment(written: str) -> float:
    """Return the epoch milliseconds of `YYYY-MM-DDThh:mm:ss.fff` in UTC."""
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (datetime.datetime.fromisoformat(written + "+00:00") - epoch) / datetime.timedelta(milliseconds=1)


BEYOND = [
    ("12345", 327403382400000.0), ("-000001", -62198755200000.0), ("+275760-09-13", 8.64e15),
    ("-271821-04-20", -8.64e15), ("Jan 22 2022 5", 1642809600000.0), ("0000000000000123", -58285699200000.0),
    ("Jan 22 2022 12:00 +999999999:00", 825450448000.0),
]  # fmt: skip
"""Years of more than four digits, before year 1, and numbers with more digits than are read."""


@pytest.mark.parametrize(
    ("written", "expected"),
    [*((written, moment(text)) for written, text in READ), *BEYOND, *((written, None) for written in NO_DATES)],
)
def test_reads_dates(written: str, expected: float | None) -> None:
    """ISO 8601 and the common forms of old are read as V8 reads them. What V8 calls an invalid date gives None."""
    assert jsdate.parse(written) == expected


@pytest.mark.parametrize(
    ("ms", "date"),
    [
        (0.0, 0.0),
        (1.9, 1.0),
        (-1.9, -1.0),
        (8.64e15, 8.64e15),
        (8.64e15 + 1, None),
        (-8.64e15 - 1, None),
        (math.nan, None),
        (math.inf, None),
    ],
)
def test_clips_numbers(ms: float, date: float | None) -> None:
    """A number of milliseconds loses its fraction; beyond 100 million days there is no date."""
    assert jsdate.from_number(ms) == date


@pytest.mark.parametrize(
    ("ms", "written"),
    [
        (1642860000000.0, "Sat Jan 22 2022 14:00:00"), (-1.0, "Wed Dec 31 1969 23:59:59"),
        (-62135596800000.0, "Mon Jan 01 0001 00:00:00"), (-62167219200001.0, "Fri Dec 31 -0001 23:59:59"),
        (8.64e15, "Sat Sep 13 275760 00:00:00"), (-8.64e15, "Tue Apr 20 -271821 00:00:00"),
    ],
)  # fmt: skip
def test_writes_dates_in_utc(ms: float, written: str) -> None:
    """The text is as from String(date) in a process whose zone is UTC."""
    assert jsdate.to_text(ms) == f"{written} GMT+0000 (Coordinated Universal Time)"


HALF_AN_HOUR = datetime.timezone(datetime.timedelta(minutes=30))


class Nowhere(datetime.tzinfo):
    """A zone that does not know its offset."""

    def utcoffset(self, dt: datetime.datetime | None) -> None:
        return


@pytest.mark.parametrize(
    ("written", "minutes"),
    [
        ("2022-01-22T14:00", 30), ("2022-01-22 14:00", 30), ("2022-01-22", 0), ("2022-01-22T14:00Z", 0),
        ("1/22/2022 14:00 GMT", 0), ("+012022-01-22T14:00", 30), ("-012022-01-22T14:00", 30),
    ],
)  # fmt: skip
def test_a_time_without_zone_is_local(written: str, minutes: int) -> None:
    """The zone applies only to a text with a time and no zone, or in a legacy form."""
    utc = jsdate.parse(written)
    assert (
        utc is not None
        and jsdate.parse(written, HALF_AN_HOUR) == utc - minutes * 60_000
        and jsdate.parse(written, Nowhere()) == utc  # type: ignore[abstract]
    )


PIECES = [
    "2022", "2022-01-22", "01", "1", "22", "2022-1-22", "12:30", "12:30:15", "12:30:15.123", "12:30:15.1", "T", "t",
    "Z", "z", "Jan", "January", "mar", "Sept", "Sat", "foo", "AM", "pm", "GMT", "UTC", "UT", "EST", "PDT", "+0200",
    "-08:00", "+2", "-", "+", ":", ".", "/", ",", "(", "(x)", ")", "1/2/2003", "99", "49", "100", "24:00", "24:00:00",
    "24:00:01", "12", "31", "32", "0", "00", "000", "2022-02-31", "+002022", "-000001", "-000000", "T14:00",
    "T14:00:00", "T14:00:00.5Z", "T14:00+02:00", "T1400", "é", "😀", "[", "@", "'", "st", "of", "::", "10::30",
    "123456789012", "0000000000000123", "999999999", "1234", "12345", "123456", "-12", "ſ", "K",
    "1970-01-01T00:00:00.000Z", " ", "  ", "\u00a0", "\0", "Sat, 22 Jan 2022 14:00:00 GMT",
    "22 January 2022 14:00 PST", "Jan 22, 2022",
]  # fmt: skip

WHOLE = [
    "2022-01-22T14:00:00.000Z", "2022-01-22 14:00", "Jan 22 2022", "Sat, 22 Jan 2022 14:00:00 GMT",
    "01/22/2022 5:06 PM", "22 January 2022 14:00 PST", "2022-01-22T14:00:00+02:30",
    "Sat Jan 22 2022 14:00:00 GMT+0100 (CET)", "+275760-09-13T00:00:00Z", "2022/01/22",
]  # fmt: skip


def number(draw: random.Random, low: int, high: int) -> str:
    """Return a number in that range, perhaps with zeros in front."""
    return str(draw.randint(low, high)).zfill(draw.choice([1, 2, 2, 2, 3, 4]))


def jumble(draw: random.Random) -> str:
    """Return pieces of dates in any order."""
    return "".join(draw.choice(PIECES) + draw.choice(["", "", " ", " ", "-", ":"]) for _ in range(draw.randint(1, 6)))


def misspelt(draw: random.Random) -> str:
    """Return a date with a few characters changed, added or dropped."""
    letters = list(draw.choice(WHOLE))
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(letters))
        new = draw.choice("0123456789:-+.TZtz ()/,apmAPMJanGé\u00a0")
        letters[at : at + draw.choice([0, 1, 1])] = draw.choice([[new], [new], []])
    return "".join(letters)


def almost_iso(draw: random.Random) -> str:
    """Return something like ISO 8601, its numbers a little out of range at times."""
    day = f"{number(draw, -5, 10000)}-{number(draw, 0, 13)}-{number(draw, 0, 33)}"
    seconds = draw.choice(["", f":{number(draw, 0, 61)}", f":{number(draw, 0, 61)}.{number(draw, 0, 99999)}"])
    zone = draw.choice(
        [
            "",
            "Z",
            " Z",
            f"+{number(draw, 0, 25)}:{number(draw, 0, 61)}",
            f"-{number(draw, 0, 2500)}",
            f" GMT+{number(draw, 0, 99999)}",
        ]
    )
    return f"{day}{draw.choice(['T', ' ', 't', '  '])}{number(draw, 0, 25)}:{number(draw, 0, 61)}{seconds}{zone}"


@pytest.mark.programs
def test_reads_as_node_reads() -> None:
    """Tens of thousands of generated texts, valid or not, are the same moment in node's `new Date`."""
    draw = random.Random(4)
    texts = [draw.choice([jumble, misspelt, almost_iso])(draw) for _ in range(30_000)]
    answers = javascript.apply("t => { const n = new Date(t).getTime(); return Number.isNaN(n) ? null : n }", texts)
    wrong = [(t, answer) for t, answer in zip(texts, answers, strict=True) if jsdate.parse(t) != answer]
    assert sum(answer is not None for answer in answers) > 5_000 and not wrong, wrong[:10]


@pytest.mark.programs
def test_writes_as_node_writes() -> None:
    """Random moments over the whole range are written as node's String(date) writes them."""
    draw = random.Random(5)
    moments = [
        float(draw.randint(-limit, limit)) for limit in (10**12, 10**13, 10**14, 8_640_000_000_000_000) for _ in range(2_000)
    ]
    answers = javascript.apply("n => String(new Date(n))", moments)
    wrong = [(ms, answer) for ms, answer in zip(moments, answers, strict=True) if jsdate.to_text(ms) != answer]
    assert not wrong, wrong[:10]


@pytest.mark.programs
@pytest.mark.parametrize("name", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
def test_local_times_as_node_has_them(name: str) -> None:
    """This includes hours that occur twice or never because of summer time, and distant years."""
    try:
        zone = zoneinfo.ZoneInfo(name)
    except zoneinfo.ZoneInfoNotFoundError:
        needs.missing("the time zone database is not installed")
    draw = random.Random(name)
    years = [draw.choice([draw.randint(1850, 2100), draw.randint(1, 9999), draw.randint(2000, 2030)]) for _ in range(4_000)]
    texts = [
        f"{year:04}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}T{draw.randint(0, 23):02}:{draw.randint(0, 59):02}"
        for year in years
    ]
    texts += [
        f"2022-{month:02}-{day:02}T{hour:02}:{minute}"
        for month in (3, 4, 10, 11)
        for day in range(1, 31)
        for hour in range(5)
        for minute in (10, 40)
    ]
    texts += [
        f"{draw.choice('+-')}{draw.randint(1, 270_000):06}-03-{draw.randint(1, 31):02}T{draw.randint(0, 23):02}:00"
        for _ in range(2_000)
    ]
    answers = javascript.apply("t => new Date(t).getTime()", texts, zone=name)
    wrong = [(t, answer) for t, answer in zip(texts, answers, strict=True) if jsdate.parse(t, zone) != answer]
    assert not wrong, wrong[:10]


def test_a_text_beyond_the_bound_is_no_date() -> None:
    """Each character could be a part of the date, which takes memory."""
    date = "2020-01-01 (" + "x" * (jsdate.LONGEST - 13) + ")"
    assert jsdate.parse(date) is not None
    assert jsdate.parse(date + " ") is None
