"""A function declared with class, reach, key and verifier; the declaration is three lines."""

import json
from pathlib import Path

import surefoot

SENT = Path("sent.jsonl")


def invoice(number: int, key: str = "") -> dict:
    with SENT.open("a") as sent:  # the mail service, as far as this example goes
        sent.write(json.dumps({"number": number, "key": key}) + "\n")
    return {"sent": number}


class SentMail:
    """Looks into the list of what was sent; it only reads."""

    name, far = "sent mail", False
    operations = (("read the list", surefoot.EffectClass.READ_ONLY),)

    def recovery_scope(self, call):
        return str(SENT.resolve())

    def inspect_effect(self, key, call, deadline, *, fenced):
        lines = SENT.read_text().splitlines() if SENT.exists() else []
        if any(json.loads(line)["key"] == key for line in lines):
            return surefoot.Observation("present", surefoot.Grade.PROOF, summary="It is in the list.")
        return surefoot.Observation("absent", surefoot.Grade.PROOF, fenced, summary="It is not in the list.")


with surefoot.open(ledger="home") as ledger, ledger.session() as session:
    send = session.guard(
        invoice, effect="NON_IDEMPOTENT", reach=["host:mail.example"], key_argument="key", verifier=SentMail()
    )
    print(send(number=17))
