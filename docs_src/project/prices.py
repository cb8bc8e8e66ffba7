"""Prices of the shop."""

VAT_PERCENT = 19


def with_vat(net_cents: int) -> int:
    return net_cents + net_cents * VAT_PERCENT // 100
