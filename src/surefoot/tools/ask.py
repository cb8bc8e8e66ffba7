"""The tool ask_user: a question to a person, whose silence is never consent.

Owns: its arguments, the service it asks through, and the words for every verdict
(TR-168). Does not own: that the question and its answer are durable, their ids, and
who is asked (`runtime.people`, which implements `Questions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from surefoot.core.effects import Effect
from surefoot.core.model import EffectClass, EffectTrace, State
from surefoot.runtime.people import TOO_MANY, Answer
from surefoot.runtime.tools import Arguments, LiveAttempt, Outcome, Tool

QUESTION_CHARACTERS = 4000
CHOICES = 20


class Questions(Protocol):
    """`services["questions"]`: makes the question durable, shows it, waits, makes the answer durable."""

    async def ask(self, attempt: LiveAttempt, text: str, choices: Sequence[str]) -> Answer:
        """The person's answer; returns for every end but the cancel of the caller."""
        ...


_WHY = {
    "expired": "the time limit passed",
    "withdrawn": "the question was withdrawn (Stop, or the turn ended)",
    "lost": "the connection to the person was lost",
    "late": "the answer came too late and was not delivered",
    "unattended": "nobody is there to ask",
    "empty": "the answer was empty",
    "too_many": f"it was not shown, because {TOO_MANY}",
}


def told(answer: Answer, choices: Sequence[str] = ()) -> Outcome:
    """The result of a question: the answer, or that there is none and why."""
    if answer.verdict == "answered" and answer.text.strip():
        chosen = answer.text.strip()
        note = "" if not choices or chosen in choices else "\n(This is none of the offered choices.)"
        return Outcome(f"The person answered:\n{answer.text}{note}")
    why = "empty" if answer.verdict == "answered" else answer.verdict
    words = _WHY.get(why, f"it ended as {why!r}")
    return Outcome(
        f"Unanswered: {words}. This is not consent. Do nothing that needed the answer.",
        State.FAILED,
        error_kind="unanswered",
        effect_trace=EffectTrace.NONE,
    )


async def _body(attempt: LiveAttempt, arguments: Arguments) -> Outcome:
    questions: Questions | None = attempt.services.get("questions")
    choices = tuple(arguments.get("choices") or ())
    if questions is None:
        return told(Answer("unattended"))
    return told(await questions.ask(attempt, arguments["question"], choices), choices)


def ask_tool() -> Tool:
    """`ask_user`, with or without choices (EC-45)."""
    return Tool(
        name="ask_user",
        description=(
            "Ask the person one question and wait for the answer. Offer `choices` when there are a few clear "
            "ones; the person may answer in other words. An unanswered question is not consent."
        ),
        parameters={
            "type": "object",
            "properties": {
                "question": {"type": "string", "minLength": 1, "maxLength": QUESTION_CHARACTERS},
                "choices": {
                    "type": "array",
                    "maxItems": CHOICES,
                    "items": {"type": "string", "minLength": 1, "maxLength": 200},
                },
            },
            "required": ["question"],
            "additionalProperties": False,
        },
        body=_body,
        effect=Effect(EffectClass.READ_ONLY, interaction=True),
        aliases=("ask_user_choice", "AskUserQuestion"),
        summary=lambda a: f"ask: {a.get('question')}",
    )
