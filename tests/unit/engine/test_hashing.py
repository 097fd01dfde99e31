"""MurmurHash3, split between configuration and request, is MurmurHash3."""

from __future__ import annotations

import mmh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flagsvc.engine.hashing import STRATEGY_SEED, VARIANT_SEED, Identifier, Prefix

TEXTS = st.text(st.characters(codec=None), max_size=60)
SEEDS = st.sampled_from([STRATEGY_SEED, VARIANT_SEED])


def low_bytes(text: str) -> bytes:
    """The slow and obvious way: the low byte of each UTF-16 unit."""
    units = text.encode("utf-16-le", "surrogatepass")
    return bytes(units[at] for at in range(0, len(units), 2))


@given(group=TEXTS, identifier=TEXTS, seed=SEEDS, utf8=st.booleans())
def test_a_split_hash_is_the_hash_of_the_whole(group: str, identifier: str, seed: int, utf8: bool) -> None:
    """For any group, identifier and seed, in both encodings, the result is mmh3's for `group:identifier`."""
    whole = f"{group}:{identifier}"
    data = whole.encode("utf-8", "surrogatepass") if utf8 else low_bytes(whole)
    assert Prefix(group, seed, utf8).hash(Identifier(identifier, utf8)) == mmh3.hash(data, seed, signed=False)


@pytest.mark.parametrize("size", range(12))
def test_every_alignment_with_every_short_identifier(size: int) -> None:
    """Identifiers shorter than what completes the prefix's last block hash right in each of the four alignments."""
    text = "xyzuvwpqrstm"[:size]
    identifier = Identifier(text, False)
    for group in ["", "a", "ab", "abc", "abcd", "abcdefg"] * 2:
        expected = mmh3.hash(f"{group}:{text}".encode(), 0, signed=False)
        assert Prefix(group, STRATEGY_SEED, False).hash(identifier) == expected


def test_the_low_byte_encoding_is_the_reference_s() -> None:
    """`Ωgrp:u1` falls into bucket 15 by low bytes and into 67 in UTF-8 (behaviour: Hash)."""
    assert Prefix("Ωgrp", 0, False).bucket(Identifier("u1", False), 100) == 15
    assert Prefix("Ωgrp", 0, True).bucket(Identifier("u1", True), 100) == 67
