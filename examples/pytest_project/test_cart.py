from cart import total


def test_total_without_tax():
    assert total([3, 4]) == 7


def test_total_with_tax():
    assert total([100], rate=20) == 120
