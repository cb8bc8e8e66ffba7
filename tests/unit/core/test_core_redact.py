"""Arguments as they may be displayed."""

from __future__ import annotations

import json

import pytest

from surefoot.core.redact import REDACTED, bounded, redact, redact_text, secret_like

SECRET_NAMES = [
    "password",
    "db_password",
    "DB_PASSWORD",
    "passwd",
    "passphrase",
    "secret",
    "clientSecret",
    "client_secret",
    "token",
    "accessToken",
    "access_token",
    "x-auth-token",
    "apiKey",
    "api_key",
    "API_KEY",
    "api-key",
    "apikey",
    "authorization",
    "Authorization",
    "proxy-authorization",
    "privateKey",
    "private_key",
    "secretKey",
    "sessionKey",
    "cookie",
    "Set-Cookie",
    "credentials",
    "auth",
    "connectionString",
    "otp",
]
PLAIN_NAMES = [
    "path",
    "content",
    "author",
    "tokens",
    "max_tokens",
    "key",
    "keyboard",
    "passage",
    "monkey",
    "secretary",
]

HIDDEN = [
    "Authorization: Bearer abcdef1234567890",
    "curl -H 'Authorization: Basic dXNlcjpodW50ZXIy' h",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nMIIabc-and-then-cut",
    "sk-proj-abcdefghij0123456789ABCDEFGH",
    "sk-ant-api03-abcdefghij0123456789ABCDEFGH",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijklmnop",
    "glpat-abcdefghij0123456789",
    "xoxb-123456789012-abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstuvw",
    "npm_abcdefghijklmnopqrstuvwxyz",
    "hf_abcdefghijklmnopqrstuvwx",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "git clone https://user:hunter2@h.example/o/n",
    "PGPASSWORD=hunter2 psql -c 'select 1'",
    "export API_KEY='hunter2 with spaces'",
    "mysql --password hunter2 -e x",
    "tool --api-key=hunter2",
    "curl -u user:hunter2 https://h.example",
    '{"password": "hunter2"}',
]
KEPT = [
    "git push origin main",
    "cat src/token.py",
    "https://h.example/path?x=1",
    "echo the password is long",
    "sort -k 2 a.txt",
    "mail a@h.example",
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_tr_5_values_under_secret_like_names_are_hidden_at_any_depth(name: str) -> None:
    assert secret_like(name)
    for value in ("hunter2", 12345, ["hunter2"], {"a": "hunter2"}):
        shown = redact({"outer": [{name: value, "path": "/a"}]})
        assert "hunter2" not in shown and "12345" not in shown
        assert json.loads(shown) == {"outer": [{name: REDACTED, "path": "/a"}]}


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_plain_names_are_shown(name: str) -> None:
    assert not secret_like(name)
    assert json.loads(redact({name: "value"})) == {name: "value"}


@pytest.mark.parametrize("text", HIDDEN)
def test_tr_5_well_known_shapes_are_hidden_in_values_and_in_free_text(text: str) -> None:
    for shown in (
        redact_text(text),
        redact({"command": text}),
        redact(json.dumps({"command": text})),
        redact(text),
    ):
        assert REDACTED in shown
        for part in ("hunter2", "abcdef", "MIIabc", "IOSFODNN", "c2lnbmF0", "dXNlcjpodW50", "123456789012"):
            assert part not in shown


@pytest.mark.parametrize("text", KEPT)
def test_ordinary_commands_stay_readable(text: str) -> None:
    assert redact_text(text) == text


def test_tr_5_values_named_secret_by_the_declaration_are_hidden() -> None:
    assert json.loads(redact({"pin_code_x": "1", "body": "b"}, ["body"])) == {
        "body": REDACTED,
        "pin_code_x": REDACTED,
    }


def test_what_is_no_json_is_searched_and_bounded() -> None:
    assert redact('{"a": "ghp_abcdefghijklmnopqrstuvwxyz0123456789') == f'{{"a": "{REDACTED}'
    shown = redact({"text": "x" * 5000}, limit=100)
    assert len(shown) < 140 and shown.endswith("more characters)")
    assert bounded("abc", 3) == "abc" and bounded("abcd", 3) == "abc… (1 more characters)"


def test_redacting_twice_changes_nothing() -> None:
    for text in HIDDEN:
        once = redact_text(text)
        assert redact_text(once) == once


def test_deep_and_odd_values_never_raise() -> None:
    deep: object = "x"
    for _ in range(200):
        deep = [deep]
    assert REDACTED in redact({"a": deep})
    assert redact({"a": object()}) == REDACTED
    assert redact("[" * 100_000)


ENDLESS = [
    "a-",
    "sk-",
    "-----BEGIN PRIVATE KEY ",
    "eyJ-",
    "eyJaaaaa.",
    "a.",
    "token",
    "token=' ",
    "--token",
    "curl ",
    "x://",
]


@pytest.mark.parametrize("piece", ENDLESS)
def test_tr_5_a_long_line_of_one_piece_does_not_hold_the_program_up(piece: str) -> None:
    # Quadratic search would take minutes here, and the limit of the test would end it.
    for text in (piece * (300_000 // len(piece)), piece + " " * 300_000, "token=" + " " * 300_000 + piece):
        redact_text(text)


@pytest.mark.parametrize(
    "text", ["x-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "token  =   hunter2", "DB.TOKEN: hunter2"]
)
def test_tr_5_a_secret_is_found_behind_what_stands_before_it(text: str) -> None:
    shown = redact_text(text)
    assert REDACTED in shown and "hunter2" not in shown and "c2lnbmF0" not in shown
