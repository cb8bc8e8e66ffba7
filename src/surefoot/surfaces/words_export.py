"""The words around an exported session in three languages, as data. Pure.

Owns: the headings of the Markdown form and the list of what was taken out. Does not own: the
words of calls (`words_table`), what is taken out (`export`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.surfaces.words import in_language
from surefoot.surfaces.words_table import Texts

EXPORT: Mapping[str, Texts] = {
    "session_id": ("session", "会话", "工作階段"),
    "directory": ("directory", "目录", "目錄"),
    "model": ("model", "模型", "模型"),
    "words": ("Conversation", "对话", "對話"),
    "calls": ("Calls", "调用", "呼叫"),
    "evidence": ("Evidence", "证据", "證據"),
    "decisions": ("Decisions", "决定", "決定"),
    "user": ("person", "用户", "使用者"),
    "assistant": ("model", "模型", "模型"),
    "redacted": (
        "redacted: {n} taken out",
        "已脱敏：移除了 {n} 处内容",
        "已遮蔽：移除了 {n} 處內容",
    ),
    "whole": (
        "not redacted: it holds everything, secrets too",
        "未脱敏：包含全部内容，也包括密钥",
        "未遮蔽：包含全部內容，也包括金鑰",
    ),
    "removed_at": ("  taken out: {place} ({n})", "  已移除：{place}（{n}）", "  已移除：{place}（{n}）"),
    "written": ("written: {file}", "已写入：{file}", "已寫入：{file}"),
}
"""Key → texts."""


def told(key: str, language: str, **values: Any) -> str:
    """One of these with its values."""
    return in_language(EXPORT[key], language).format(**values)
