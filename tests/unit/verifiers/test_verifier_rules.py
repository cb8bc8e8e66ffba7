"""The rules around every verifier: registration, scope before the start, errors and nonsense (TR-98 to TR-103)."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.core.model import EffectClass, Grade, Receipt
from surefoot.errors import UsageError
from surefoot.runtime.tools import Outcome, Registry, Tool, observe, scope_of
from surefoot.verifiers.database import SqliteVerifier
from surefoot.verifiers.files import FilesVerifier
from surefoot.verifiers.git import GitVerifier
from surefoot.verifiers.http import HttpVerifier
from surefoot.verifiers.port import Deadline, Observation, WriteAttempted
from surefoot.verifiers.process import ProcessVerifier

LATER = Deadline(1 << 60)
PROOF = Observation("present", Grade.PROOF, summary="it is there")


class Verifier:
    name = "test"
    far = False

    def __init__(self, answer: Any = PROOF, scope: Any = "account/7") -> None:
        self.answer, self.scope = answer, scope

    def recovery_scope(self, call: Receipt) -> Any:
        if isinstance(self.scope, Exception):
            raise self.scope
        return self.scope

    def inspect_effect(self, key: str, call: Receipt, deadline: Deadline, *, fenced: bool) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def tool(verifier: Any) -> Tool:
    def body(live: Any, arguments: Any) -> Outcome:
        return Outcome("done")

    return Tool("pay", "Pays.", {"type": "object"}, sync_body=body, verifier=verifier)


def call(**fields: Any) -> Receipt:
    known = {"tool": "pay", "scope": "account/7", "idempotency_key": "k"}
    return Receipt("ses_1", "trn_1", "cal_1", "att_1", 0, **{**known, **fields})


@pytest.mark.parametrize("kind", [kind for kind in EffectClass if kind is not EffectClass.READ_ONLY])
def test_tr_103_a_verifier_that_declares_a_write_is_refused_at_registration(kind: EffectClass) -> None:
    class Writing(Verifier):
        operations = (("GET", EffectClass.READ_ONLY), ("POST", kind))

    with pytest.raises(UsageError, match="a verifier may only read"):
        Registry([tool(Writing())])


def test_tr_103_a_verifier_that_reads_is_taken_and_every_built_in_one_says_what_it_does() -> None:
    class Reading(Verifier):
        operations = (("GET", EffectClass.READ_ONLY),)

    assert len(Registry([tool(Reading())])) == 1 and len(Registry([tool(Verifier())])) == 1
    for kind in (GitVerifier, HttpVerifier, ProcessVerifier, SqliteVerifier):
        assert kind.operations and all(effect is EffectClass.READ_ONLY for _, effect in kind.operations)
    assert FilesVerifier.far is False


def test_tr_99_a_scope_that_cannot_be_told_before_the_start_is_noted_and_the_call_runs() -> None:
    assert scope_of(tool(Verifier()), call()) == ("account/7", ())
    for scope in (OSError("offline"), "", None, 7):
        named, notes = scope_of(tool(Verifier(scope=scope)), call())
        assert named == "session:ses_1" and notes[0] == "scope_unknown"


def test_tr_99_a_call_without_scope_gets_strong_at_most() -> None:
    unnamed = call(scope="session:ses_1", notes=("scope_unknown",))
    found = observe(Verifier(), unnamed, LATER, fenced=True)
    assert (found.state, found.grade, found.reason) == ("present", Grade.STRONG, "scope_unknown")
    absent = observe(Verifier(Observation("absent", Grade.PROOF, True)), unnamed, LATER, fenced=True)
    assert absent.grade is Grade.STRONG, "so it can never become absent and fenced"


@pytest.mark.parametrize("scope", ["account/8", "", None])
def test_tr_99_another_or_no_scope_at_inspection_is_unknown_never_absent(scope: Any) -> None:
    absent = Observation("absent", Grade.PROOF, True)
    found = observe(Verifier(absent, scope), call(), LATER, fenced=True)
    assert (found.state, found.reason) == ("unknown", "scope_changed")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (RuntimeError("boom"), "verifier_raised"),
        (TimeoutError(), "verifier_raised"),
        (WriteAttempted("POST"), "verifier_wrote"),
        (None, "verifier_nonsense"),
        ("present", "verifier_nonsense"),
        (Observation("there", Grade.PROOF), "verifier_nonsense"),
        (Observation("present", "proof"), "verifier_nonsense"),  # type: ignore[arg-type]
        (Observation("present", Grade.PROOF, evidence={"x": object()}), "verifier_nonsense"),
        (Observation("present", Grade.PROOF, evidence=[1]), "verifier_nonsense"),  # type: ignore[arg-type]
        (Observation("absent", Grade.PROOF, fenced="yes"), "verifier_nonsense"),  # type: ignore[arg-type]
        (Observation("absent", Grade.PROOF, summary=None), "verifier_nonsense"),  # type: ignore[arg-type]
    ],
)
def test_tr_102_a_verifier_that_raises_or_answers_nonsense_is_an_answer_of_its_own(
    answer: Any, reason: str
) -> None:
    found = observe(Verifier(answer), call(), LATER, fenced=True)
    assert (found.state, found.reason) == ("unknown", reason)


def test_tr_98_a_tool_may_choose_its_verifier_by_the_call() -> None:
    one, other = Verifier(), Verifier()
    chosen = Tool(
        "pay", "Pays.", {"type": "object"}, sync_body=lambda live, arguments: Outcome("x"), verifier=one,
        choose_verifier=lambda receipt: other if receipt.process else None,
    )  # fmt: skip
    assert chosen.verifier_for(call()) is None and chosen.verifier_for(call(process={"x": 1})) is other
    assert tool(one).verifier_for(call()) is one
