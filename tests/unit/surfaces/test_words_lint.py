"""Words: complete in three languages, and never more than is known."""

from __future__ import annotations

import re
import string

import pytest

from surefoot.core.model import Action
from surefoot.surfaces import plain, words, words_chat
from surefoot.surfaces.words_table import BANNED_CHINESE

TABLES = {
    "sentences": words.SENTENCES,
    "causes": words.CAUSES,
    "not_run": words.NOT_RUN,
    "failed": words.FAILED,
    "refusals": words.REFUSALS,
    "reasons": words.REASONS,
    "grades": words.GRADES,
    "slash": words_chat.SLASH,
    "keys": dict(enumerate(words_chat.KEYS)),
    "answers": words_chat.ANSWERS,
    "why": words_chat.WHY,
    "states": {key: state.texts for key, state in words.STATES.items()},
}
ALL = [(table, key) for table, texts in TABLES.items() for key in texts]


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize(("table", "key"), ALL)
def test_ux_64_every_text_stands_in_three_languages_with_the_same_values(table: str, key: str) -> None:
    texts = TABLES[table][key]
    assert len(texts) == 3 and all(text.strip() for text in texts)
    assert len({frozenset(fields(text)) for text in texts}) == 1
    if not re.fullmatch(r"[{}a-z ]*", texts[0]) and table != "grades":
        assert any("\u4e00" <= letter <= "\u9fff" for letter in texts[1] + texts[2])


def has_word(text: str, word: str, language: str) -> bool:
    if language != "en":
        return word in text
    return re.search(rf"\b{re.escape(word)}\b", text.lower()) is not None


@pytest.mark.parametrize("language", words.LANGUAGES)
@pytest.mark.parametrize("key", list(words.STATES))
def test_ux_3_no_state_is_told_with_a_word_banned_for_it(key: str, language: str) -> None:
    text = words.STATES[key].texts[words.LANGUAGES.index(language)]
    for banned in words.banned(key, language):
        if key == "absent_fenced" and banned in ("没有发现", "沒有發現"):
            continue  # banned for a look that stayed unknown, not for this row
        assert not has_word(text, banned, language), (key, banned)


UNKNOWN_TEXTS = (
    "known", "known_before_start", "not_known", "not_known_any", "next_wait", "next_fence", "next_fence_all",
    "next_fence_same", "next_none", "no_verifier", "count_unknown", "end_outcome_unknown", "way_out",
)  # fmt: skip


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_ux_3_nothing_said_of_an_unknown_call_is_success_or_failure(language: str) -> None:
    index = words.LANGUAGES.index(language)
    told = [words.SENTENCES[key][index] for key in UNKNOWN_TEXTS]
    told += [texts[index] for texts in words.CAUSES.values()]
    for text in told:
        for banned in words.banned("unknown", language):
            assert not has_word(text, banned, language), (text, banned)


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_ux_63_grades_promise_nothing(language: str) -> None:
    told = " ".join(words.grade_word(grade, language) for grade in words.GRADES).lower()
    assert not any(word in told for word in words.BANNED_GRADE_WORDS)
    assert words.grade_word("of a newer version", language) == words.grade_word("none", language)


def test_ux_3_every_banned_english_word_has_its_chinese_forms() -> None:
    wanted = {word for state in words.STATES.values() for word in state.never}
    assert wanted - set(BANNED_CHINESE) == set()


def test_ux_63_every_state_has_a_mark_and_an_ascii_mark() -> None:
    assert all(len(state.mark) == 1 and state.ascii.isascii() for state in words.STATES.values())


def test_tr_41_every_reason_of_the_closed_list_has_a_sentence() -> None:
    not_started = {
        "arguments_invalid", "tool_missing", "schema_unusable", "permission_denied", "approval_expired", "fenced",
        "confirmed_effect", "look_first", "answered_from_receipt", "postcondition_satisfied", "batch_dependency",
        "hook_refused", "receipt_not_durable", "lease_lost", "truncated_call", "duplicate_call", "hook_unstable",
        "ledger_file", "deadline_too_short", "cancelled_before_start", "owner_died_before_start",
    }  # fmt: skip
    unknown = {
        "cancelled", "time_limit", "connection_lost", "process_signal", "undecided_exception", "owner_died",
        "child_open", "ledger_tail_lost", "declared", "no_evidence",
    }  # fmt: skip
    assert not_started <= set(words.NOT_RUN)
    assert unknown == set(words.CAUSES)
    assert set(words.FAILED) == {"never_ran", "changed_underneath"}


def test_ux_65_every_code_of_the_rules_has_a_sentence_of_its_own() -> None:
    codes = {
        "unauthenticated", "unsupported", "bad_request", "unknown_field", "body_too_large", "unknown_action",
        "session_required", "session_header_mismatch", "not_foreground", "session_mismatch", "running",
        "finishing", "rotating", "closed", "not_owner", "lease_lost", "epoch_stale", "revision_stale",
        "attempt_unknown", "already_resolved", "person_required", "inspection_required", "inspection_stale",
        "executor_alive", "storage_failed", "retry_disabled", "retry_attempts_spent", "retry_rejected",
        "retry_executor_alive", "retry_tool_missing", "retry_verifier_missing", "retry_scope_changed",
        "retry_effect_not_absent", "retry_target_changed", "recovery_unavailable", "recovery_stale",
        "recovery_spent", "question_unknown", "question_closed", "question_not_shown",
    }  # fmt: skip
    assert codes <= set(words.REFUSALS)
    assert {"descendant_of_tool", "inside_tool_body", "assurance_too_low", "code_missing"} <= set(
        words.REASONS
    )


def test_tr_125_the_codes_the_rules_can_give_all_have_sentences() -> None:
    import inspect

    from surefoot.core import admission

    source = inspect.getsource(admission)
    for code in set(re.findall(r'"([a-z]+(?:_[a-z]+)+)"', source)) & {*words.REFUSALS}:
        assert words.refusal(code, "en") != code
    for code in re.findall(r'"(retry_[a-z_]+)"', source):
        assert code in words.REFUSALS, code


def test_ux_64_every_action_has_a_label() -> None:
    assert all(action.value in words.SENTENCES for action in Action)


def test_ux_65_a_reason_is_told_beside_its_code() -> None:
    told = words.refusal("person_required", "en", reason="code_missing")
    assert told == "Only a person may decide this. Type the code printed on the card."
    assert words.refusal("code_of_tomorrow", "zh-Hans") == "code_of_tomorrow"


def test_ux_63_the_reader_is_named_only_where_the_reader_decided() -> None:
    assert words.state_words("confirmed", "en") == "a person said it happened"
    assert words.state_words("confirmed", "en", you=True) == "you said it happened"
    assert words.state_words("denied", "zh-Hant", you=True) == "你確認沒有發生"


@pytest.mark.parametrize(
    ("setting", "environ", "language"),
    [
        ("auto", {"LC_ALL": "zh_CN.UTF-8", "LANG": "en_US"}, "zh-Hans"),
        ("auto", {"LANG": "zh_TW.UTF-8"}, "zh-Hant"),
        ("auto", {"LC_MESSAGES": "zh-Hant", "LANG": "en"}, "zh-Hant"),
        ("auto", {"LANG": "de_DE"}, "en"),
        ("auto", {}, "en"),
        ("zh-Hans", {"LANG": "en"}, "zh-Hans"),
    ],
)
def test_ux_11_the_language_comes_from_the_setting_then_the_locale(
    setting: str, environ: dict[str, str], language: str
) -> None:
    assert words.language_of(setting, environ) == language


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_ux_16_the_lines_of_help_and_keys_fit_a_terminal_of_80_columns(language: str) -> None:
    rows = plain.table(words_chat.slash_help(language)) + words_chat.key_help(language)
    assert [row for row in rows if plain.width_of(row) > 79] == []
