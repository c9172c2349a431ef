"""A suite of which one test passes only when it is run again."""

import os

import pytest

FIRST = os.environ.get("KOS_RETRY_ATTEMPT", "1") == "1"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_total(count):
    assert count * 2 == count + count


@pytest.mark.parametrize("code", ["a b", "c::d"])
def test_voucher(code):
    assert not FIRST, f"the voucher service is not ready for {code}"


def test_empty_cart():
    assert not FIRST
