"""The calls of one reply: which are one call sent twice, and in which order they run.

Owns: calls of a reply → dispatched calls (TR-31 to TR-34), order inside a batch
(TR-88 to TR-90). Does not own: one call's steps (`barrier`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from surefoot.core.canonical import ArgumentsInvalid, read_arguments
from surefoot.core.model import EffectClass, Receipt
from surefoot.providers.port import Reply, ReplyCall
from surefoot.providers.written import CUT_FINISHES
from surefoot.runtime.barrier import Barrier
from surefoot.runtime.climbing import Climber
from surefoot.runtime.live import Batch, Call, Looked
from surefoot.runtime.scheduler import Scheduler


def dispatch(reply: Reply, scheduler: Scheduler) -> list[dict[str, Any]]:
    """The `calls` of an assistant entry: our ids beside what the model wrote (D1)."""
    return [
        {
            "callId": scheduler.new_id("cal"),
            "attemptId": scheduler.new_id("att"),
            "position": position,
            "askedName": call.name,
            "arguments": call.arguments or "",
            "providerCallId": call.provider_call_id,
        }
        for position, call in enumerate(reply.calls)
    ]


def as_calls(
    reply: Reply,
    dispatched: Sequence[dict[str, Any]],
    turn_id: str,
    *,
    batch_split: bool,
    repeated_ids: str = "accept",
) -> list[Call]:
    """The calls to run, marked where their message broke off (TR-34) or a block repeats another (TR-33).

    `repeated_ids` is the contract's `ids.repeated_in_reply`; `distinct` says that equal ids say nothing,
    `refuse` that a message with equal ones runs nothing at all (TR-32).
    """
    cut_message = (reply.finish or "") in CUT_FINISHES
    first_of: dict[tuple[str, str, str], str] = {}
    given_ids = [(call.provider_call_id or "").strip() for call in reply.calls]
    alike = Counter(zip(given_ids, (call.name for call in reply.calls), strict=True))
    ids, named = set(given_ids), [one for one in given_ids if one]
    refused = repeated_ids == "refuse" and len(named) != len(set(named))
    telling = repeated_ids != "distinct" and len(ids) > 1
    calls = []
    for position, (asked, given) in enumerate(zip(reply.calls, dispatched, strict=True)):
        is_last = position == len(reply.calls) - 1
        cut = asked.cut or (cut_message and (is_last or not batch_split))
        given_id = given_ids[position]
        # Only blocks of one id and one tool are read here, since reading a long text takes its time.
        same = _sameness(asked) if telling and given_id and alike[given_id, asked.name] > 1 else None
        original = first_of.setdefault(same, given["callId"]) if same is not None else given["callId"]
        calls.append(
            Call(
                turn_id=turn_id,
                call_id=given["callId"],
                attempt_id=given["attemptId"],
                asked_name=asked.name,
                arguments=asked.arguments,
                cut=cut,
                duplicate_of=None if original == given["callId"] else original,
                refused_whole=refused,
            )
        )
    return calls


def _sameness(call: ReplyCall) -> tuple[str, str, str] | None:
    """What makes two blocks of a message one call sent twice: provider id, tool and argument digest."""
    try:
        digest = read_arguments(call.arguments).digest
    except ArgumentsInvalid:
        return None
    return (call.provider_call_id or "", call.name, digest)


async def run_batch(
    barrier: Barrier, calls: Sequence[Call], scheduler: Scheduler, *, climber: Climber | None = None
) -> list[Receipt]:
    """Run the calls of one message: neighbouring readers side by side, every write by itself, in call order.

    Each call settles by itself at once; a sibling's failure, cancel or question voids none (TR-30). A call
    that waits between two tries holds back later writes if it is one itself (TR-90), and nothing else (TR-165).
    Raises the first `LedgerError` or signal of a call after all calls that began have ended.
    """
    batch = Batch()
    every: list[Any] = []
    writes: list[Any] = []
    for group in _groups([await barrier.look(call) for call in calls]):
        if not _reads(group[0]):
            await scheduler.wait(*writes)
        begun = [_begin(barrier, climber, looked, batch) for looked in group]
        every += (tasks := [task for task, _ in begun])
        writes += [] if _reads(group[0]) else tasks
        for task, resting in begun:
            await scheduler.first(task, resting)
            resting.cancel()
        if any(task.done() and (task.cancelled() or task.exception()) for task in every):
            break  # the first failure is the one that is raised
    await scheduler.wait(*every)
    return [task.result() for task in every]


def _begin(barrier: Barrier, climber: Climber | None, looked: Looked, batch: Batch) -> tuple[Any, Any]:
    """The task of one call, and a future that is set when it first waits for another try."""
    scheduler = barrier.session.scheduler
    resting = scheduler.future()
    work = barrier.run(looked, batch) if climber is None else climber.run(looked, batch, resting)
    task = scheduler.spawn(work, f"run {looked.call.attempt_id}")
    task.add_done_callback(scheduler.heard)
    return task, resting


def _groups(looked: Sequence[Looked]) -> list[list[Looked]]:
    groups: list[list[Looked]] = []
    for one in looked:
        if groups and _reads(one) and _reads(groups[-1][-1]):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _reads(looked: Looked) -> bool:
    return looked.effect.effect_class is EffectClass.READ_ONLY or looked.effect.interaction
