"""What the flags of the programs in this package say, in three languages, as data. Pure.

Owns: the help of `surefoot emulate`, headings of a help text, and mistakes by their English form. Does not own:
which flags there are, what the demo says (`demo_words`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from surefoot.surfaces.words import in_language
from surefoot.surfaces.words_table import Texts

WORDS: Mapping[str, Texts] = {
    "usage": ("usage: ", "用法：", "用法："),
    "options": ("options", "选项", "選項"),
    "help": ("show this help message and exit", "显示这段说明并退出", "顯示這段說明並退出"),
    "next": ("next: ", "下一步：", "下一步："),
    "about": (
        "A strict, scripted model server; its first line is its URL.",
        "按脚本回答的严格模型服务器；输出的第一行是它的地址。",
        "按腳本回答的嚴格模型伺服器；輸出的第一行是它的位址。",
    ),
    "profile": (
        "whose rules the printed URL follows: {names}",
        "所打印的地址遵循谁的规则：{names}",
        "所印出的位址遵循誰的規則：{names}",
    ),
    "wire": (
        "whose base URL is printed; all wires are served",
        "打印哪种协议的地址；所有协议都提供服务",
        "印出哪種協定的位址；所有協定都提供服務",
    ),
    "port": ("0 takes a free one", "0 表示取一个空闲端口", "0 表示取一個空閒的連接埠"),
    "script": (
        "JSON file: a list of steps, or an object or list of scripts",
        "JSON 文件：步骤列表，或一个脚本对象，或脚本列表",
        "JSON 檔案：步驟清單，或一個腳本物件，或腳本清單",
    ),
    "log": (
        "file the request log is appended to",
        "请求日志追加到的文件",
        "請求日誌附加到的檔案",
    ),
    "until_stdin_closes": (
        "end when whoever started it is gone",
        "启动它的程序消失时结束",
        "啟動它的程式消失時結束",
    ),
}
"""Help texts and headings."""

_MISTAKES: tuple[tuple[str, str, str], ...] = (
    (
        r"(?P<flag>--\S+): invalid choice: (?P<given>.+?) \(choose from (?P<known>.+)\)",
        "{flag}：没有 {given}（可选：{known}）",
        "{flag}：沒有 {given}（可選：{known}）",
    ),
    (
        r"(?P<flag>--\S+): invalid int value: (?P<given>.+)",
        "{flag}：{given} 不是整数",
        "{flag}：{given} 不是整數",
    ),
    (r"(?P<flag>--\S+): expected one argument", "{flag} 需要一个值", "{flag} 需要一個值"),
    (
        r"(?P<flag>--\S+): ignored explicit argument (?P<given>.+)",
        "{flag} 不带值，给的是 {given}",
        "{flag} 不帶值，給的是 {given}",
    ),
    (
        r"ambiguous option: (?P<given>\S+) could match (?P<known>.+)",
        "{given} 可能是：{known}",
        "{given} 可能是：{known}",
    ),
    (r"unrecognized arguments: (?P<given>.+)", "无法识别的参数：{given}", "無法識別的參數：{given}"),
    (
        r"--script (?P<file>.+) is no JSON: (?P<why>.+)",
        "--script {file} 不是 JSON：{why}",
        "--script {file} 不是 JSON：{why}",
    ),
    (
        r"--port (?P<port>\S+) is no port\. Use 0 to 65535",
        "--port {port} 不是端口，请用 0 到 65535",
        "--port {port} 不是連接埠，請用 0 到 65535",
    ),
    (
        r"--port (?P<port>\S+) cannot be listened on: (?P<why>.+)",
        "--port {port} 无法监听：{why}",
        "--port {port} 無法監聽：{why}",
    ),
    (
        r"--profile (?P<name>\S+) speaks (?P<known>.+), not (?P<given>\S+)",
        "--profile {name} 支持 {known}，不支持 {given}",
        "--profile {name} 支援 {known}，不支援 {given}",
    ),
    (r"(?P<file>.+) cannot be used: (?P<why>.+)", "{file} 无法使用：{why}", "{file} 無法使用：{why}"),
)  # fmt: skip
"""Mistakes by the form of their English text, most special first."""


def flag_word(key: str, language: str, **values: object) -> str:
    """One text with its values."""
    return in_language(WORDS[key], language).format(**values)


def mistake(sentence: str, language: str) -> str:
    """A mistake in this language, with its full stop; what is in none of the forms stays as it came."""
    english = sentence.removeprefix("argument ").rstrip(".")
    if language != "en":
        for form, simplified, traditional in _MISTAKES:
            found = re.fullmatch(form, english)
            if found is not None:
                told = simplified if language == "zh-Hans" else traditional
                return told.format(**found.groupdict()) + "。"
    return english + "."
