"""The words of the ledger's upkeep in three languages, as data. Pure.

Owns: what is told of sessions and blobs that were dropped, and of those that were kept.
Does not own: what is kept (`core.retention`), how it is printed (`cli.pruning`).
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.surfaces.words import in_language
from surefoot.surfaces.words_table import Texts

KEPT: Mapping[str, Texts] = {
    "open_calls": (
        "a call in it may have happened and nobody has decided about it; see: surefoot recover list",
        "其中有调用可能已发生，还没有人决定；查看：surefoot recover list",
        "其中有呼叫可能已發生，還沒有人決定；查看：surefoot recover list",
    ),
    "unsettled_calls": (
        "its process ended in the middle of a call and nobody has looked since; go on with it: surefoot -r {session}",
        "它的进程在一次调用中途结束，之后没有人看过；继续：surefoot -r {session}",
        "它的行程在一次呼叫中途結束，之後沒有人看過；繼續：surefoot -r {session}",
    ),
    "background": (
        "a command it started in the background may still run",
        "它在后台启动的命令可能仍在运行",
        "它在背景啟動的命令可能仍在執行",
    ),
    "owned": ("it is open in a process", "有进程正打开它", "有行程正開啟它"),
    "tail_lost": ("the end of it is missing", "它缺少末尾", "它缺少結尾"),
    "lost": ("only the witness knows it", "只有见证文件知道它", "只有見證檔知道它"),
    "unreadable": ("it cannot be read", "无法读取", "無法讀取"),
}
"""Reason → why nothing of an old session was dropped."""

PRUNED: Mapping[str, Texts] = {
    "dropped": ("{project}: dropped {counts}", "{project}：已清除 {counts}", "{project}：已清除 {counts}"),
    "would_drop": (
        "{project}: would drop {counts}",
        "{project}：将清除 {counts}",
        "{project}：將清除 {counts}",
    ),
    "counts": (
        "{sessions} sessions ({payloads} entries), {blobs} blobs ({size}), {runs} run folders",
        "{sessions} 个会话（{payloads} 条记录）、{blobs} 个数据块（{size}）、{runs} 个运行目录",
        "{sessions} 個工作階段（{payloads} 筆記錄）、{blobs} 個資料塊（{size}）、{runs} 個執行目錄",
    ),
    "one_dropped": ("  dropped: {session}", "  已清除：{session}", "  已清除：{session}"),
    "one_kept": ("  kept: {session}: {why}", "  保留：{session}：{why}", "  保留：{session}：{why}"),
    "ask": (
        "{sessions} sessions lose their words, arguments and results for good; a line for each call that wrote stays. "
        "Drop them?",
        "{sessions} 个会话将永久失去其内容、参数和结果；每次写入的调用仍留下一行。要清除吗？",
        "{sessions} 個工作階段將永久失去其內容、參數和結果；每次寫入的呼叫仍留下一行。要清除嗎？",
    ),
    "ask_one": (
        "Session {session} loses its words, arguments and results for good; a line for each call that wrote stays. "
        "Drop it?",
        "会话 {session} 将永久失去其内容、参数和结果；每次写入的调用仍留下一行。要清除吗？",
        "工作階段 {session} 將永久失去其內容、參數和結果；每次寫入的呼叫仍留下一行。要清除嗎？",
    ),
    "type_id": (
        "{calls} calls in it may have happened; their arguments and evidence go for good. Type {short} to drop it",
        "其中 {calls} 次调用可能已发生；它们的参数和证据将永久消失。要清除请输入 {short}",
        "其中 {calls} 次呼叫可能已發生；它們的參數和證據將永久消失。要清除請輸入 {short}",
    ),
    "undecided": (
        "{calls} calls in it may have happened and nobody has decided about them.",
        "其中 {calls} 次调用可能已发生，还没有人决定。",
        "其中 {calls} 次呼叫可能已發生，還沒有人決定。",
    ),
    "removed": (
        "{session}: dropped ({payloads} entries)",
        "{session}：已清除（{payloads} 条记录）",
        "{session}：已清除（{payloads} 筆記錄）",
    ),
    "no_ledger": (
        "There is no ledger in this project yet.",
        "该项目还没有账本。",
        "該專案還沒有帳本。",
    ),
}


def pruned(key: str, language: str, **values: object) -> str:
    """The sentence `key` about what was dropped."""
    return in_language(PRUNED[key], language).format(**values)


def kept(reason: str, language: str, *, session: str) -> str:
    """Why an old session was kept; a code without a sentence speaks for itself."""
    texts = KEPT.get(reason)
    return in_language(texts, language).format(session=session) if texts else reason
