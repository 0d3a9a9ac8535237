"""Days that a program compares as texts, and last days of which only midnight counts, are told."""

from __future__ import annotations

import pytest

from code_chains.verification.sanity.days import misread_days

TIMED = "  columns: `at` (datetime, 2023-04-01 08:12:00 to 2023-05-13 00:00:00), `day` (date, 2023-04-01 to 2023-05-13)"
TOLD = {
    "a text": ("df[(df['day'] >= '01/04/2023')]", "by their characters"),
    "a text with dots": ("[r for r in rows if r['day'] < '01.04.2023']", "by their characters"),
    "a text under a name": (
        "first = '1/4/23'\n[r for r in rows if first <= r['day']]",
        "by their characters",
    ),
    "between": ("df[df['day'].between('01-04-2023', '30-04-2023')]", "by their characters"),
    "a chain": ("[r for r in rows if '01/04/2023' <= r[2] <= '30/04/2023']", "by their characters"),
    "a last day": ("df[df['at'] <= '2023-05-12']", "only midnight counts"),
    "a last day as a time": ("df[df['at'] <= pd.Timestamp('2023-05-12')]", "only midnight counts"),
    "a last day of between": ("df[df['at'].between('2023-04-01', '2023-05-12')]", "only midnight counts"),
    "a last day on the left": ("df['2023-05-12' >= df['at']]", "only midnight counts"),
}
FINE = {
    "days": "df[df['day'] <= '2023-05-12']",
    "a converted column": "df['day'] = pd.to_datetime(df['day'], dayfirst=True)\ndf[df['day'] >= '01/04/2023']",
    "the next day": "df[df['at'] < '2023-05-13']",
    "a first day": "df[df['at'] >= '2023-05-12']",
    "a time": "df[df['at'] <= '2023-05-12 23:59:59']",
    "days of times": "df[df['at'].dt.date <= date(2023, 5, 12)]",
    "an equal text": "df[df['day'] == '01/04/2023']",
    "a version": "df[df['v'] > '1.2.10']",
    "a day that begins with its year": "df[df['day'] > '24-01-05']",
    "times that are days now": "df['at'] = pd.to_datetime(df['at']).dt.normalize()\ndf[df['at'] <= '2023-04-30']",
    "no day": "df[df['name'] >= 'M']",
    "no program": "df[",
}


@pytest.mark.parametrize(("code", "reason"), TOLD.values(), ids=TOLD)
def test_days_that_are_compared_as_something_else_are_told(code: str, reason: str) -> None:
    assert reason in misread_days(code, TIMED)


@pytest.mark.parametrize("code", FINE.values(), ids=FINE)
def test_days_that_are_compared_as_days_are_not_told(code: str) -> None:
    assert misread_days(code, TIMED) == ""
