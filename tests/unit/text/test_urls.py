"""Addresses are shown without their passwords."""

from __future__ import annotations

import pytest

from kos_retry.text.urls import passwords, without_password

_URLS = {
    "user": ("postgresql://ci:staple@db/kos", "postgresql://ci:[redacted]@db/kos"),
    "no-password": ("postgresql://ci@db:5432/kos", "postgresql://ci@db:5432/kos"),
    "no-user": ("postgresql://db:5432/kos?sslmode=require", "postgresql://db:5432/kos?sslmode=require"),
    "at-sign-in-it": ("postgresql://ci:st@ple@db/kos", "postgresql://ci:[redacted]@db/kos"),
    "slash-in-it": ("postgresql://ci:st/ple@db/kos", "postgresql://ci:[redacted]@db/kos"),
    "encoded": ("postgresql://ci:st%40ple@db/kos", "postgresql://ci:[redacted]@db/kos"),
    "parameter": ("postgresql:///kos?user=ci&password=staple", "postgresql:///kos?user=ci&password=[redacted]"),
    "several": ("postgresql://a:b@h/d?sslpassword=c&x=1", "postgresql://a:[redacted]@h/d?sslpassword=[redacted]&x=1"),
    "empty": ("postgresql://ci:@db/kos", "postgresql://ci:@db/kos"),
    "no-address": ("none", "none"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("url", "shown"), _URLS.values(), ids=_URLS)
def test_address_is_shown_without_its_password(url, shown):
    assert shown == without_password(url)


@pytest.mark.parametrize(("url", "shown"), _URLS.values(), ids=_URLS)
def test_hiding_twice_changes_nothing(url, shown):
    assert shown == without_password(without_password(url))


def test_passwords_are_found_as_they_are_written():
    assert ["b", "c"] == passwords("postgresql://a:b@h/d?sslpassword=c&x=1")
