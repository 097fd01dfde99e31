"""What random documents and contexts are made of: for each context field, and each family of operators, values that meet."""

from __future__ import annotations

NAMES = ["beta", "new.checkout", "Ωmega", "dark mode", "größe", "flag/with/slash", "UPPER", "upper", "emoji😀", "a", "日本語"]
USERS = [
    *[str(number) for number in range(1, 41)],
    *("7", "42", "123", "0", "7.0", "-1", "true", "null", "undefined", "user@example.com", "Ωgrp", "ÄÖÜ", "äöü", "😀", "李小龍"),
    *("a:b", "x,y", " padded ", "a+b", "50%", "q&a=1", "İstanbul", "ΣΑΣ", "\u00a0nbsp", "tab\there", "long-" * 40),
]
SESSIONS = ["s1", "s2", "sess-Ω", "0.123", "ÄÖ", "😀😀", "0", "123456"]
GROUPS = ["grp", "Ωgrp", "größe", "😀", "", "a:b", "g" * 50, " ", "7"]
TEXTS = ["eu", "EU", "Eu-West", "us", "straße", "STRASSE", "Ελλάδα", "ΕΛΛΆΔΑ", "ΣΑΣ", "σας", "İ", "i̇", "ı", "ﬀ", "K", "e\u0301"]
BLANKS = ["", " ", "  ", "\t", "\u00a0", "\ufeff", "\u0085", "\u001f", "\u200b", "\u3000"]
USUAL_NUMBERS = ["5", "5.0", "5.5", "0", "-1", "10", "1e1", "7", "12"]
NUMBERS = [
    *USUAL_NUMBERS * 5,
    *("5", "5.0", "5.5", "0", "-0", "-1", "10", "1e1", "1E+1", "0x10", "0X1f", "0b11", "0o17", ".5", "5.", "+3", "Infinity"),
    *("-Infinity", "+Infinity", "infinity", "inf", "nan", "NaN", "", " ", " 7 ", "\u00a05", "\ufeff5", "\u00855", "1_0", "1,5"),
    *("12px", "abc", "٣", "１", "1e400", "-1e400", "9007199254740993", "1e-7", "0x", "--1", "1e", "0x1.8", "00012", "true"),
]
USUAL_VERSIONS = ["1.2.3", "1.2.4", "2.0.0", "1.10.0", "1.2.3-beta.1", "1.2.3-beta.2", "1.2.3+build.7"]
VERSIONS = [
    *USUAL_VERSIONS * 5,
    *("1.2.3", "1.2.4", "2.0.0", "1.10.0", "1.2.3-beta.1", "1.2.3-beta.2", "1.2.3-beta.11", "1.2.3-alpha", "1.2.3-1", "1.2.3-a.b"),
    *("1.2.3+build.7", "1.2.3-beta+exp", "v1.2.3", "V1.2.3", " 1.2.3", "1.2.3 ", "v 1.2.3", "=1.2.3", "1.2", "1", "01.2.3"),
    *("1.2.3-01", "1.2.3-", "1.2.3-a..b", "1.2.3.4", "", "latest", "9007199254740991.0.0", "9007199254740992.0.0", "1.2.3-ä"),
]
DATES = [
    *("2022-01-22T13:00:00.000Z", "2022-01-22T14:00:00+01:00", "2022-01-22", "2022", "2022-01", "2022-01-22 14:00", "2022-1-2"),
    *("2000-01-01T00:00:00Z", "2099-12-31T23:59:59Z", "not a date", "", "Sat, 22 Jan 2022 13:00:00 GMT", "22 Jan 2022"),
    *("Jan 22, 2022 13:00", "2022/01/22", "01/22/2022", "+012022-01-22T13:00:00Z", "2022-02-30", "2022-02-30T00:00:00Z"),
    *("2022-01-22T24:00:00Z", "2022-13-01", "1642856400000", "2022-01-22T13:00:00.123456Z", "2022-01-22T13:00", "20220122"),
    "Sat Jan 22 2022 13:00:00 GMT+0000 (Coordinated Universal Time)",
]
ADDRESSES = [
    *["10.1.2.3", "192.168.1.7", "2001:db8::1", "::1", "::ffff:10.1.2.3"] * 4,
    *("10.1.2.3", "192.168.1.7", "127.0.0.1", "255.255.255.255", "0.0.0.0", "::1", "2001:db8::1"),
    *("2001:DB8:0:0::1", "fe80::1%eth0"),
    *("::ffff:10.1.2.3", "10.1.2.3/24", "10.1.2.3 ", " 10.1.2.3", "010.1.2.3", "10.1.2", "10.1.2.3.4", "256.1.1.1"),
    *("", "localhost"),
    *("1.2.3.04", "0x7f.0.0.1", "::", "2001:db8::1/64", "1::2::3", "[::1]", "12345::"),
]
RANGES = [
    *["10.0.0.0/8", "10.1.2.0/24", "192.168.0.0/16", "2001:db8::/32", "::1/128"] * 3,
    *("10.0.0.0/8", "10.1.2.0/24", "192.168.0.0/16", "192.168.1.7", "127.0.0.1/32", "0.0.0.0/0", "10.1.2.3/33", "10.1.2.3/08"),
    *("10.1.2.3/24", " 10.0.0.0/8 ", "::1", "::1/128", "2001:db8::/32", "2001:DB8::/32", "::/0"),
    *("::ffff:10.0.0.0/104", "fe80::/10"),
    *("2001:db8::1/129", "10.0.0.0/255.0.0.0", "10.0.0.0/-1", "10.0.0.0/", "/8", "bogus", "", "010.1.2.3", "::ffff:0:0/96"),
]
PATTERNS = [
    *("^eu", "u$", "^$", "", ".*", ".", "[A-Z]+", "[[:alpha:]]+", r"\d{2,}", r"^\d+$", r"\w+@\w+\.com", "(?i)eu", "(?i:EU)-west"),
    *(r"\bEu\b", "eu|us", "(e)(u)", "(?P<n>eu)", "(?=eu)", r"(e)\1", "(", "[a-", "a{1001}", "*", "+?", "x*+"),
    *(r"\p{Greek}+", r"\pL"),
    *(r"\p{Lu}", r"\Qa.b\E", r"\z", r"\Z", r"^\s*$", "(?s).", "(?m)^s", "straße", "(?i)STRASSE", "(?i)σας", "(?i)k"),
    *("😀", r"\x{1F600}"),
    *("ß|ü", "(?-i)EU", r"[^\x00-\x7F]", "e?", r"\C", "(?U)e+", "(?#c)eu", "a++", r"\u0041", r"\cA", "[]a]", "]", "}", "a{,2}"),
]
APPS = ["web", "Web", "mobile-app", "Ünïcode", "proxy-under-test"]
ENVIRONMENTS = ["default", "production", "development", "Prod"]
HOSTS = ["some-host", "Some-Host", "some-host , other", "other", ",some-host", "other,  SOME-HOST", "", "some-host.example"]
ROLLOUTS = ["0", "1", "25", "50", "50", "75", "99", "100", "100", "100"]
ODD_ROLLOUTS = [*("33.3", "-5", "200", "abc", "", " 50 ", "0x32", "5e1", "NaN", "Infinity", "٥٠"), *(50, 0, 100, 12.5, None)]
PAYLOADS = [
    *(
        {"type": "string", "value": "plain"},
        {"type": "string", "value": ""},
        {"type": "string", "value": 'quote " \\ \n \u2028 😀'},
    ),
    *({"type": "json", "value": '{"a": [1, 2, "ü"]}'}, {"type": "csv", "value": "a,b,ç"}, {"type": "number", "value": "42.50"}),
]
STICKINESS = [
    "default",
    "default",
    "userId",
    "sessionId",
    "region",
    "plan",
    "remoteAddress",
    "größe",
    "appName",
    "missing",
    "random",
]

# A property of the context → what its values are taken from.
PROPERTIES: dict[str, list[str]] = {
    "region": TEXTS,
    "plan": [*TEXTS, *BLANKS, "free", "pro", "a,b"],
    "age": NUMBERS,
    "version": VERSIONS,
    "email": [*USERS, "user@example.com", "USER@EXAMPLE.COM"],
    "ip": ADDRESSES,
    "date": DATES,
    "größe": [*TEXTS, *NUMBERS],
    "x y": TEXTS,
    "a.b": TEXTS,
    "featureToggle": NAMES,
}
STANDARD: dict[str, list[str]] = {
    "userId": USERS,
    "sessionId": SESSIONS,
    "appName": APPS,
    "environment": ENVIRONMENTS,
    "remoteAddress": ADDRESSES,
    "currentTime": DATES,
}
FIELDS: dict[str, list[str]] = {**STANDARD, **PROPERTIES, "properties": ["[object Object]", "x"], "missing": TEXTS}

# A family of operators → its operators, the fields whose values meet it, and the values its constraints hold.
FAMILIES: dict[str, tuple[list[str], list[str], list[str]]] = {
    "list": (["IN", "NOT_IN"], list(FIELDS), []),
    "text": (["STR_CONTAINS", "STR_STARTS_WITH", "STR_ENDS_WITH"], ["region", "plan", "email", "userId", "appName", "x y"], []),
    "number": (["NUM_EQ", "NUM_GT", "NUM_GTE", "NUM_LT", "NUM_LTE"], ["age", "age", "age", "userId", "größe", "missing"], NUMBERS),
    "date": (["DATE_AFTER", "DATE_BEFORE"], ["currentTime", "date", "missing"], DATES),
    "version": (["SEMVER_EQ", "SEMVER_GT", "SEMVER_GTE", "SEMVER_LT", "SEMVER_LTE"], ["version"] * 4 + ["missing"], VERSIONS),
    "pattern": (["REGEX"], ["region", "email", "plan", "userId"], PATTERNS),
    "range": (["IN_CIDR"], ["remoteAddress", "ip"], RANGES),
    "unknown": (["BOGUS", "", "in", "STR_EQ"], ["region", "userId"], TEXTS),
}
