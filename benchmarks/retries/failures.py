"""What commands print when they fail: in the formats of real tools, about a shop that does not exist.

``$pid``, ``$ms``, ``$time`` and ``$tmp`` differ from attempt to attempt, as they do in real logs.
"""

from __future__ import annotations

from random import Random
from string import Template
from typing import NamedTuple

# So many renderings of each text are enough to show that what differs does not count; each is observed once.
RENDERINGS = 4


class Failure(NamedTuple):
    """What one way to fail prints, and the exit code that comes with it."""

    text: str
    exit_code: int = 1

    def printed(self, rendering: int) -> str:
        """Return the text with what is volatile filled in."""
        draw = Random(f"{self.text}:{rendering}")  # noqa: S311 - the same noise every time, guards nothing
        return Template(self.text).substitute(
            pid=draw.randrange(300, 99_999),
            ms=draw.randrange(3, 900),
            time=f"2026-03-{draw.randrange(1, 29):02}T{draw.randrange(24):02}:{draw.randrange(60):02}:41.{draw.randrange(999):03}Z",
            tmp=f"/tmp/build.{draw.getrandbits(40):010x}",  # noqa: S108 - no file is made
        )


# The words name a cause that no retry mends.
NAMED = {
    "compile error (C)": Failure("""\
cart.c: In function 'total':
cart.c:2:31: error: 'prise' undeclared (first use in this function)
    2 | int total(int n) { return n * prise; }
      |                               ^~~~~
make: *** [Makefile:4: cart.o] Error 1
""", 2),
    "compile error (Go)": Failure("""\
# shop
./cart.go:2:36: undefined: prise
"""),
    "type error (TypeScript)": Failure("""\
src/cart.ts(12,9): error TS2322: Type 'string' is not assignable to type 'number'.
""", 2),
    "missing module (Python)": Failure("""\
Traceback (most recent call last):
  File "$tmp/shop/cart.py", line 1, in <module>
    import shopkit
ModuleNotFoundError: No module named 'shopkit'
"""),
    "missing module (Node)": Failure("""\
node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module 'left-shelf'
Require stack:
- $tmp/shop/index.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at Module._load (node:internal/modules/cjs/loader:1038:27)
  code: 'MODULE_NOT_FOUND',
"""),
    "usage error": Failure("""\
usage: shopctl [-h] --prices PRICES
shopctl: error: the following arguments are required: --prices
""", 2),
    "lint": Failure("""\
cart.py:1:8: F401 [*] `os` imported but unused
Found 1 error.
[*] 1 fixable with the `--fix` option.
"""),
    "syntax error (Python)": Failure("""\
  File "$tmp/shop/cart.py", line 1
    def total(:
              ^
SyntaxError: invalid syntax
"""),
    "missing command": Failure("build.sh: 4: shopctl: not found\n", 127),
    "missing target (make)": Failure("make: *** No rule to make target 'prices'.  Stop.\n", 2),
}  # fmt: skip

# A retry does not mend these either, but the words could be those of a flake.
UNNAMED = {
    "failing test (pytest)": Failure("""\
F                                                                        [100%]
=================================== FAILURES ===================================
______________________________ test_total_of_two _______________________________

    def test_total_of_two():
>       assert total([4, 8]) == 12
E       assert 13 == 12
E        +  where 13 = total([4, 8])

test_cart.py:3: AssertionError
=========================== short test summary info ============================
FAILED test_cart.py::test_total_of_two - assert 13 == 12
1 failed in 0.${ms}s
"""),
    "failing test (Go)": Failure("""\
--- FAIL: TestTotal (0.${ms}s)
    cart_test.go:3: Total(2) = 3, want 4
FAIL
FAIL\tshop\t0.${ms}s
FAIL
"""),
    "failing test (Node)": Failure("""\
TAP version 13
# Subtest: adds a price
not ok 1 - adds a price
  ---
  duration_ms: 4.$ms
  failureType: 'testCodeFailure'
  error: |-
    Expected values to be strictly equal:

    3 !== 2

  code: 'ERR_ASSERTION'
  name: 'AssertionError'
  ...
1..1
# fail 1
# duration_ms $ms.3124
"""),
    "exception": Failure("""\
$time INFO reading prices (pid $pid)
Traceback (most recent call last):
  File "$tmp/shop/price.py", line 9, in price
    return prices[name]
           ~~~~~~^^^^^^
KeyError: 'milk'
"""),
    "own check": Failure("""\
$time checking 14 shops
error: the price list is empty: expected 3 prices, got 0
"""),
    "silent": Failure("", 1),
}  # fmt: skip

# Waiting mends these, and the words say so.
TRANSIENT = {
    "connection reset": Failure("""\
fetching prices for 14 shops (pid $pid)
curl: (56) Recv failure: Connection reset by peer
""", 56),
    "503 with Retry-After": Failure("""\
HTTP/1.1 503 Service Unavailable
Retry-After: 3
X-Request-Id: $pid-$ms
curl: (22) The requested URL returned error: 503
""", 22),
    "lock held": Failure("""\
E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process $pid (apt-get)
E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?
""", 100),
    "registry timeout": Failure("""\
npm error code ETIMEDOUT
npm error errno ETIMEDOUT
npm error network request to https://registry.shop.example/left-shelf failed, reason: connect ETIMEDOUT 203.0.113.7:443
npm error network This is a problem related to network connectivity.
"""),
    "name resolution": Failure("""\
fatal: unable to access 'https://git.shop.example/cart.git/': Could not resolve host: git.shop.example
""", 128),
}  # fmt: skip

# A service that is not up yet.
STARTING = Failure("""\
$time waiting for the shop (pid $pid)
curl: (7) Failed to connect to localhost port 8080 after $ms ms: Connection refused
""", 7)  # fmt: skip

# These come and go, and look exactly as if they stayed.
FLAKES = {
    "race in a test": Failure("""\
=================================== FAILURES ===================================
_____________________________ test_basket_is_empty _____________________________
test_basket.py:14: AssertionError
=========================== short test summary info ============================
FAILED test_basket.py::test_basket_is_empty - assert 1 == 0
1 failed, 41 passed in 3.${ms}s
"""),
    "slow page": Failure("""\
  11 passing (4s)
  1 failing

  1) checkout
       shows the total:
     Error: Timeout of 2000ms exceeded. For async tests and hooks, ensure "done()" is called.
      at listOnTimeout (node:internal/timers:581:17)
"""),
    "missing element": Failure("""\
$time INFO browser started (pid $pid)
error: element #total was not found on the page of the cart
"""),
    "unsorted answer": Failure("""\
--- FAIL: TestShelves (0.${ms}s)
    shelf_test.go:31: Shelves() = [tea milk], want [milk tea]
FAIL
FAIL\tshop/shelf\t1.${ms}s
"""),
}  # fmt: skip

ORDER_DEPENDENT = tuple(
    Failure(f"""\
=========================== short test summary info ============================
FAILED test_shop.py::test_{name} - KeyError: '{name}'
1 failed, 11 passed in 2.${{ms}}s
""")
    for name in ("tea", "milk", "bread", "rice", "salt", "soap", "oil", "eggs", "corn", "beans", "plums", "leeks")
)  # fmt: skip
