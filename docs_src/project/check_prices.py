"""Checks of the shop."""

from prices import with_vat

if with_vat(100) not in (119, 120):
    raise SystemExit("VAT is wrong")
print("ok")
