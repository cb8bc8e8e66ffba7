"""A payment that is never made twice by guessing."""

import sys

import surefoot


def charge(cents: int, attempt=None) -> dict:
    with open("charges.txt", "a") as charges:  # the world, as far as this example goes
        charges.write(f"{cents} {attempt.idempotency_key}\n")
    return {"charged": cents}


with surefoot.open(ledger="home") as ledger, ledger.session() as session:
    pay = session.guard(charge, effect="NON_IDEMPOTENT", reach=["host:bank.example"])
    try:
        print(pay(cents=500, identity="order 17"))
        print(pay(cents=500, identity="order 17"))  # asked twice, made once
    except surefoot.OutcomeUnknown as unknown:
        print(f"{unknown} Decide: surefoot recover", file=sys.stderr)
        sys.exit(3)
