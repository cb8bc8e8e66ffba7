"""An order whose reply was lost, looked up in the shop's own database."""

import sqlite3
from contextlib import closing

import surefoot
from surefoot.verifiers.database import SqliteVerifier

with closing(sqlite3.connect("shop.db")) as shop:
    shop.execute("create table if not exists orders (item, key)")


def order(item: str, attempt=None):
    with closing(sqlite3.connect("shop.db")) as shop, shop:
        shop.execute("insert into orders values (?, ?)", (item, attempt.idempotency_key))
    raise ConnectionError("the reply was lost")


look = SqliteVerifier("shop.db", "select 1 from orders where key = :key")

with surefoot.open(ledger="home") as ledger, ledger.session() as session:
    buy = session.guard(order, effect="NON_IDEMPOTENT", reach=["db:shop"], verifier=look)
    try:
        buy(item="lamp")
    except surefoot.OutcomeUnknown as unknown:
        found = session.inspect(unknown.facts["attempt_id"])
        print(found["state"], found["grade"], "-", found["summary"])
    print(len(session.open_calls()), "calls are open")
