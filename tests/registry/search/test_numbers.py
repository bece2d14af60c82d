"""Numbers as people write them."""

import re

import pytest

from registry.search.numbers import QUANTITY, read_quantity, write_shares


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("50,000", 50_000),
        ("1.5k", 1500),
        ("5万", 50_000),
        ("十万", 100_000),
        ("十二万", 120_000),
        ("五万", 50_000),
        ("一千五百", 1500),
        ("一亿五千万", 150_000_000),
        ("两百", 200),
        ("3e-4", 0.0003),
        ("7b", 7_000_000_000),
        ("70亿", 7_000_000_000),
        ("100 billion", 100_000_000_000),
        ("0.60", 0.6),
        ("-5", -5),
        (".5", 0.5),
    ],
)
def test_a_number_is_read_as_written(text: str, number: float) -> None:
    assert re.fullmatch(QUANTITY, text)
    assert read_quantity(text) == number


@pytest.mark.parametrize("text", ["0,05", "0,001", "1,00", "1.2.3", "1,000,00"])
def test_a_decimal_comma_is_no_number_rather_than_another_one(text: str) -> None:
    assert not re.match(QUANTITY, text)


@pytest.mark.parametrize(
    ("text", "percent"),
    [
        ("六成", "60%"),
        ("七成五", "75%"),
        ("一成半", "15%"),
        ("百分之五", "5%"),
        ("百分之 12.5", "12.5%"),
        ("成绩", "成绩"),
    ],
)
def test_shares_are_written_as_percent(text: str, percent: str) -> None:
    assert write_shares(text) == percent
