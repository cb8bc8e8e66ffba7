"""Canonical form, digests, keys and ids."""

from __future__ import annotations

import hashlib

import pytest

from surefoot.core.canonical import (
    ArgumentsInvalid,
    canonical_json,
    digest_text,
    idempotency_key,
    is_id,
    make_id,
    read_arguments,
    short_id,
)

VECTORS = [
    ('{"b": 1, "a": 2}', '{"a":2,"b":1}', "d3626ac30a87e6f7"),
    ('{"n":1}', '{"n":1}', "2bfd14f43d17fc7c"),
    ('{"n":1.0}', '{"n":1.0}', "3b6b06ecd1c968c8"),
    ('{"s":"\\u00e9\\u003c\\/"}', '{"s":"é</"}', "9e838863fe233a21"),
    ('{"t":"a\\u000ab\\u0001"}', '{"t":"a\\nb\\u0001"}', "012a953045d26c72"),
    ("", "{}", "44136fa355b3678a"),
]

REFUSED = [
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":2}',
    '{"a":1} x',
    '{"a":1}{}',
    '{"a":1 /* no */}',
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":-Infinity}',
    '{"a":"\\ud800"}',
    '{"a":"\ud800"}',
    '\ufeff{"a":1}',
    "[1]",
    "1",
    "null",
    '{"a":01}',
    "{'a':1}",
    '{"a":1,}',
    '{"a"',
    b"\xff",
    '{"a":"b\nc"}',
]


@pytest.mark.parametrize(("text", "canonical", "begins"), VECTORS)
def test_tr_13_the_vectors_of_the_specification_hold(text: str, canonical: str, begins: str) -> None:
    read = read_arguments(text)
    assert read.canonical == canonical
    assert read.digest.startswith(f"sha256:{begins}")
    assert read.digest == "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


@pytest.mark.parametrize("text", REFUSED)
def test_tr_10_text_that_is_not_one_strict_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(ArgumentsInvalid):
        read_arguments(text)


@pytest.mark.parametrize("text", [None, "", " \t\r\n", b""])
def test_tr_11_absent_or_blank_text_reads_as_an_empty_object_and_is_marked(text: str | bytes | None) -> None:
    read = read_arguments(text)
    assert (read.value, read.canonical, read.absent) == ({}, "{}", True)
    assert not read_arguments("{}").absent


def test_tr_10_tr_185_depth_and_size_are_refused_one_above_the_bound() -> None:
    deep = "[" * 63 + "]" * 63
    assert read_arguments(f'{{"a":{deep}}}').value
    with pytest.raises(ArgumentsInvalid, match="deeper"):
        read_arguments(f'{{"a":[{deep}]}}')
    fits = '{"a":"' + "x" * 93 + '"}'
    assert len(fits) == 101
    assert read_arguments(fits, max_bytes=101).value
    with pytest.raises(ArgumentsInvalid, match="larger"):
        read_arguments(fits, max_bytes=100)


def test_tr_10_braces_inside_strings_are_no_depth() -> None:
    assert read_arguments('{"a":"' + "{[" * 100 + '\\"{"}').value


def test_tr_10_an_error_never_quotes_a_value() -> None:
    with pytest.raises(ArgumentsInvalid) as caught:
        read_arguments('{"password":"hunter2" oops}')
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("number", ["1", "1.0", "1e0", "-0", "0", "1E+2", "123456789012345678901234567890"])
def test_tr_12_a_number_keeps_the_literal_it_was_written_with(number: str) -> None:
    assert read_arguments(f'{{"n": {number} }}').canonical == f'{{"n":{number}}}'


def test_tr_12_keys_sort_by_code_point_and_text_is_not_normalised() -> None:
    assert (
        canonical_json({"é": 1, "z": 2, "\U0001f600": 3, "\uffee": 4})
        == '{"z":2,"é":1,"\uffee":4,"\U0001f600":3}'
    )
    assert canonical_json(["é", "e\u0301"]) == '["é","e\u0301"]'
    assert canonical_json("\x7f\u2028/<") == '"\x7f\u2028/<"'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, {"a": object()}, b"x"])
def test_tr_12_what_has_no_json_form_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


KEY = {
    "argument_digest": read_arguments('{"b": 1, "a": 2}').digest,
    "call": "cal_00000000000000000000000002",
    "scope": "session:ses_00000000000000000000000001",
    "session": "ses_00000000000000000000000001",
    "tool": "write_file",
    "turn": "trn_00000000000000000000000001",
}


def test_tr_14_the_key_vector_of_the_specification_holds() -> None:
    assert idempotency_key(**KEY).startswith("sf1-d9c3979430ec96cb")


@pytest.mark.parametrize("part", sorted(KEY))
def test_tr_14_every_part_changes_the_key(part: str) -> None:
    assert idempotency_key(**{**KEY, part: "other"}) != idempotency_key(**KEY)


def test_tr_1_ids_are_typed_fixed_in_length_and_ordered_by_time() -> None:
    first, later = make_id("att", 1_700_000_000_000, 2**80 - 1), make_id("att", 1_700_000_000_001, 0)
    assert first < later and len(first) == len("att_") + 26
    assert is_id(first) and is_id(first, "att") and not is_id(first, "ses")
    assert not is_id(first.upper()) and not is_id(first[:-1]) and not is_id("att_" + "i" * 26)
    assert make_id("att", 5, 1) != make_id("att", 5, 2)


def test_a_short_id_grows_until_it_is_unique_among_its_kind() -> None:
    full = "att_" + "0" * 22 + "7f3a"
    assert short_id(full) == "att_7f3a"
    assert short_id(full, [full, "att_" + "1" * 22 + "7f3a"]) == "att_07f3a"
    assert short_id(full, ["ses_" + "1" * 22 + "7f3a"]) == "att_7f3a"


def test_tr_13_white_space_key_order_and_escapes_do_not_change_the_digest() -> None:
    texts = ['{"a":"é","b":[1,2]}', '{ "b" : [1, 2],\n"a":"\\u00e9"}', '{"a":"\\u00E9","b":[1,2]}']
    assert len({read_arguments(text).digest for text in texts}) == 1
    assert digest_text("{}") == read_arguments("").digest
