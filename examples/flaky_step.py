"""A step that fails twice, each time for another reason, and then passes."""

import os
import sys

attempt = int(os.environ.get("KOS_RETRY_ATTEMPT", "1"))
print(f"checking the shop, attempt {attempt}")
if attempt == 1:
    sys.exit("error: the price list is empty: expected 3 prices, got 0")
if attempt == 2:
    sys.exit("error: cart total is off by one: expected 12, got 11")
print("all good")
