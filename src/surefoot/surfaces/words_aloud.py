"""The labels of what is read aloud, in three languages, as data. Pure.

Owns: the word in front of each fact in the drawing for screen readers (UX-60). Does not own: the facts'
own words (`words_table`), which facts there are (`drawing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.surfaces.words import in_language
from surefoot.surfaces.words_table import Texts

ALOUD: Mapping[str, Texts] = {
    "call": (
        "call {n} of {all}: {what}",
        "第 {n} 个调用，共 {all} 个：{what}",
        "第 {n} 個呼叫，共 {all} 個：{what}",
    ),
    "row": ("item {n} of {all}", "第 {n} 项，共 {all} 项", "第 {n} 項，共 {all} 項"),
    "id": ("id: {what}", "编号：{what}", "編號：{what}"),
    "state": ("state: {what}", "状态：{what}", "狀態：{what}"),
    "fact": ("{name}: {what}", "{name}：{what}", "{name}：{what}"),
    "check": ("check {n}: {what}", "检查 {n}：{what}", "檢查 {n}：{what}"),
    "check_limit": ("check {n} {what}", "检查 {n} {what}", "檢查 {n} {what}"),
    "check_grade": ("check {n} grade: {what}", "检查 {n} 等级：{what}", "檢查 {n} 等級：{what}"),
    "process": ("process: {what}", "进程：{what}", "行程：{what}"),
    "choice": ("choice {n}: {key}, {what}", "选项 {n}：{key}，{what}", "選項 {n}：{key}，{what}"),
    "option": ("choice {n}: {what}", "选项 {n}：{what}", "選項 {n}：{what}"),
    "code": ("code: {what}", "代码：{what}", "代碼：{what}"),
    "executor": ("what it left: {what}", "它留下的：{what}", "它留下的：{what}"),
    "command": ("command: {what}", "命令：{what}", "命令：{what}"),
    "earlier": ("{n} earlier", "更早的 {n} 个", "更早的 {n} 個"),
    "bar": ("{time}, {lane}: {what}", "{time}，{lane}：{what}", "{time}，{lane}：{what}"),
    "press": (
        "choice {n} is {what}; to record it press {keys}",
        "选项 {n} 是“{what}”；要记录，请按 {keys}",
        "選項 {n} 是「{what}」；要記錄，請按 {keys}",
    ),
    "then_code": ("{key}, then type {code}", "{key}，再输入 {code}", "{key}，再輸入 {code}"),
}
"""Each label with the place of its fact."""


def aloud(label: str, language: str, **values: Any) -> str:
    """One labelled line."""
    return in_language(ALOUD[label], language).format(**values)
