"""A shop's cart with a bug in it: the rate is meant to be a share, not a percentage."""


def total(prices: list[int], rate: int = 0) -> int:
    """Return the sum of the prices with tax."""
    return sum(prices) + sum(prices) * rate
