"""A program that decides about its own unknown call, by the word of a named person."""

import surefoot


def publish(page: str):
    raise surefoot.OutcomeUnknown("the reply was lost")


with surefoot.open(ledger="home") as ledger, ledger.session() as session:
    put_online = session.guard(publish, effect="NON_IDEMPOTENT", reach=["host:site.example"])
    try:
        put_online(page="news")
    except surefoot.OutcomeUnknown as unknown:
        attempt = {"attemptId": unknown.facts["attempt_id"]}

    now = session.recovery.snapshot()
    decided_on = {name: now[name] for name in ("sessionPath", "runtimeEpoch", "revision")}
    try:
        session.recovery.act({**decided_on, **attempt, "action": "confirm"}, by="maria")
    except surefoot.RecoveryRefused as refused:
        print(refused.facts["code"], "-", refused)

    now = session.recovery.act({**decided_on, **attempt, "action": "inspect"}, by="maria")
    looked = {"revision": now["revision"], "inspectionId": now["calls"][0]["inspectionId"]}
    pressed = {**decided_on, **looked, **attempt, "action": "confirm", "note": "it is on the page"}
    now = session.recovery.act(pressed, by="maria")
    print(now["calls"][0]["resolution"]["kind"], "by", now["calls"][0]["resolution"]["who"])
