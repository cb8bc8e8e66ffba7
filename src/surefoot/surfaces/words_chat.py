"""The words of the chat in three languages, as data: slash commands, keys, short answers. Pure.

Owns: what `/help` and `?` show and what a slash command answers. Does not own: the words of
recovery (`words_table`), which command there is (`chat_lines`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.surfaces.words import in_language
from surefoot.surfaces.words_table import Texts

SLASH: Mapping[str, Texts] = {
    "/help": ("these commands and the keys", "这些命令和按键", "這些命令和按鍵"),
    "/model": ("the model in use", "正在使用的模型", "正在使用的模型"),
    "/permissions": (
        "mode and rules; /permissions MODE sets the mode",
        "模式和规则；/permissions MODE 设定模式",
        "模式和規則；/permissions MODE 設定模式",
    ),
    "/mcp": ("MCP servers of the settings", "设置中的 MCP 服务器", "設定中的 MCP 伺服器"),
    "/resume": ("sessions of this project", "本项目的会话", "本專案的工作階段"),
    "/timeline": (
        "what ran when, and where the process died",
        "何时执行了什么，进程在哪里终止",
        "何時執行了什麼，行程在哪裡終止",
    ),
    "/diff": (
        "what the work tree has that its last commit has not",
        "工作区与最近一次提交的差异",
        "工作區與最近一次提交的差異",
    ),
    "/context": (
        "what the model is given with the next request",
        "下一次请求会给模型的内容",
        "下一次請求會給模型的內容",
    ),
    "/export": (
        "write this session to FILE.md or FILE.json, secrets taken out",
        "把本会话写入 FILE.md 或 FILE.json，已移除密钥",
        "把本工作階段寫入 FILE.md 或 FILE.json，已移除金鑰",
    ),
    "/processes": (
        "what runs in the background (also Ctrl+T)",
        "在后台运行的命令（也可按 Ctrl+T）",
        "在背景執行的命令（也可按 Ctrl+T）",
    ),
    "/clear": ("start a new session", "开始新会话", "開始新的工作階段"),
    "/compact": (
        "put notes in the place of earlier messages, for the model",
        "用笔记代替较早的消息，仅对模型而言",
        "用筆記代替較早的訊息，僅對模型而言",
    ),
    "/rewind": (
        "back to before the newest turn, for the model; or TURN",
        "回到最近一轮之前，仅对模型而言；或 /rewind TURN",
        "回到最近一輪之前，僅對模型而言；或 /rewind TURN",
    ),
    "/usage": (
        "tokens of this session (also /cost)",
        "本会话的 token 用量（也可用 /cost）",
        "本工作階段的 token 用量（也可用 /cost）",
    ),
    "/doctor": (
        "check settings, ledger, keys and terminal",
        "检查设置、账本、密钥和终端",
        "檢查設定、帳本、金鑰和終端機",
    ),
    "/recover": ("calls that may have happened", "可能已发生的调用", "可能已發生的呼叫"),
    "/recover-context": (
        "after a refusal: one request from valid history; [id] [words]",
        "被拒绝之后：从有效历史发送一次请求；[id] [给模型的话]",
        "被拒絕之後：從有效歷史送出一次請求；[id] [給模型的話]",
    ),
    "/continue": ("go on without new words", "不带新话继续", "不帶新話繼續"),
    "/quit": (
        "leave; what runs under supervision goes on",
        "离开；受监管的命令继续运行",
        "離開；受監管的命令繼續執行",
    ),
}
"""Each slash command with what it does (UX-17)."""

KEYS: tuple[Texts, ...] = (
    (
        "Enter send · Alt+Enter or Ctrl+J new line · Esc stop the turn",
        "Enter 发送 · Alt+Enter 或 Ctrl+J 换行 · Esc 停止本轮",
        "Enter 送出 · Alt+Enter 或 Ctrl+J 換行 · Esc 停止本輪",
    ),
    (
        "Ctrl+C clear, stop, leave · Ctrl+D leave · Shift+Tab next permission mode",
        "Ctrl+C 清空、停止、离开 · Ctrl+D 离开 · Shift+Tab 下一个权限模式",
        "Ctrl+C 清空、停止、離開 · Ctrl+D 離開 · Shift+Tab 下一個權限模式",
    ),
    (
        "Ctrl+R search history · Ctrl+G editor · Ctrl+O full transcript",
        "Ctrl+R 搜索历史 · Ctrl+G 编辑器 · Ctrl+O 完整记录",
        "Ctrl+R 搜尋歷史 · Ctrl+G 編輯器 · Ctrl+O 完整記錄",
    ),
    (
        "Ctrl+Z suspend · / commands · ! a command of your own · @ files · ? keys",
        "Ctrl+Z 挂起 · / 命令 · ! 你自己的命令 · @ 文件 · ? 按键",
        "Ctrl+Z 暫停 · / 命令 · ! 你自己的命令 · @ 檔案 · ? 按鍵",
    ),
    (
        "Esc Esc go back to earlier words · Ctrl+T what runs in the background",
        "Esc Esc 回到之前说过的话 · Ctrl+T 在后台运行的命令",
        "Esc Esc 回到之前說過的話 · Ctrl+T 在背景執行的命令",
    ),
)
"""The keys of UX-16, in lines."""

ANSWERS: Mapping[str, Texts] = {
    "mistake": (
        "{word} is no command; did you mean {near}?",
        "{word} 不是命令，你是想用 {near} 吗？",
        "{word} 不是命令，你是想用 {near} 嗎？",
    ),
    "answer_hint": ("answer, then Enter", "回答后按 Enter", "回答後按 Enter"),
    "other_model": (
        "another: surefoot -c -m ENDPOINT/MODEL",
        "换一个：surefoot -c -m ENDPOINT/MODEL",
        "換一個：surefoot -c -m ENDPOINT/MODEL",
    ),
    "mcp_servers": (
        "MCP servers in the settings: {names}",
        "设置中的 MCP 服务器：{names}",
        "設定中的 MCP 伺服器：{names}",
    ),
    "turn_runs": ("a turn is running; stop it first", "本轮仍在进行，请先停止", "本輪仍在進行，請先停止"),
    "begun_anew": (
        "new session; back to the old one: surefoot -r {old}",
        "已开始新会话；回到旧会话：surefoot -r {old}",
        "已開始新的工作階段；回到舊的：surefoot -r {old}",
    ),
    "other_session": (
        "another: leave, then surefoot -r REF",
        "换一个：先离开，再用 surefoot -r REF",
        "換一個：先離開，再用 surefoot -r REF",
    ),
    "no_mode": ("{mode} is no mode: {modes}", "{mode} 不是模式：{modes}", "{mode} 不是模式：{modes}"),
    "mode": ("mode {mode}", "模式 {mode}", "模式 {mode}"),
    "usage": (
        "replies {n} · tokens in {given} · tokens out {made}",
        "{n} 次回复 · 输入 {given} token · 输出 {made} token",
        "{n} 次回覆 · 輸入 {given} token · 輸出 {made} token",
    ),
    "nothing_to_compact": (
        "there is nothing to compact yet",
        "还没有可压缩的内容",
        "還沒有可壓縮的內容",
    ),
    "cancelled": ("stopped; nothing changed", "已停止，没有改变", "已停止，沒有改變"),
    "not_now": ("not now: {code}", "现在不行：{code}", "現在不行：{code}"),
    "remains": ("still in the world: {what}", "仍留在外部：{what}", "仍留在外部：{what}"),
    "rewound": (
        "the model goes on from before that turn; its calls stay in the record",
        "模型将从那一轮之前继续，其中的调用仍留在记录里",
        "模型將從那一輪之前繼續，其中的呼叫仍留在記錄裡",
    ),
    "no_rewind": (
        "there are no earlier words to go back to",
        "没有可以回到的话",
        "沒有可以回到的話",
    ),
    "rewind_head": (
        "go back to before these words, for the model; what was done stays done:",
        "让模型回到这些话之前；已做的事不会撤销：",
        "讓模型回到這些話之前；已做的事不會復原：",
    ),
    "rewind_hint": (
        "number, then Enter · Esc leaves it",
        "输入编号后按 Enter · Esc 不改变",
        "輸入編號後按 Enter · Esc 不改變",
    ),
    "not_rewound": ("nothing was changed", "没有改变任何内容", "沒有改變任何內容"),
    "no_repository": (
        "no git repository with a commit is here",
        "这里没有带提交的 git 仓库",
        "這裡沒有帶提交的 git 儲存庫",
    ),
    "no_change": (
        "nothing has changed since the last commit",
        "自最近一次提交以来没有变化",
        "自最近一次提交以來沒有變化",
    ),
    "untracked": ("new, not tracked: {file}", "新文件，未跟踪：{file}", "新檔案，未追蹤：{file}"),
    "more_lines": ("… {n} more lines: git diff", "…… 还有 {n} 行：git diff", "…… 還有 {n} 行：git diff"),
    "context": (
        "{messages} messages · {tokens} tokens in the last request",
        "{messages} 条消息 · 上一次请求 {tokens} token",
        "{messages} 則訊息 · 上一次請求 {tokens} token",
    ),
    "instructions": ("instructions: {file}", "说明文件：{file}", "說明檔案：{file}"),
    "no_process": ("nothing runs in the background", "后台没有任何运行", "背景沒有任何執行"),
    "not_sent": (
        "these words went to no model; say them again when you come back:",
        "这些话没有发给模型；回来时请再说一次：",
        "這些話沒有送給模型；回來時請再說一次：",
    ),
    "lists_carried": (
        "lists the {n} that proof or strong signs say happened",
        "列出有确证或有力迹象表明已发生的 {n} 个",
        "列出有確證或有力跡象顯示已發生的 {n} 個",
    ),
    "press_again": (
        "H again: you say of these {n} that they happened; the others stay",
        "再按一次 H：由你确认这 {n} 个已经发生，其余保持不变",
        "再按一次 H：由你確認這 {n} 個已經發生，其餘保持不變",
    ),
    "nothing_carried": (
        "none has proof or strong signs; decide one by one",
        "没有一个有确证或有力迹象，请逐个决定",
        "沒有一個有確證或有力跡象，請逐個決定",
    ),
    "choosing_adopt": (
        "attached; its end is told here",
        "已接上，结束时会在这里告知",
        "已接上，結束時會在這裡告知",
    ),
    "choosing_kill": ("stopping it …", "正在停止……", "正在停止……"),
    "choosing_leave": ("leaving it", "保留它继续运行", "保留它繼續執行"),
}
"""What a chat and its slash commands answer."""

WHY: Mapping[str, Texts] = {
    "no_rule": ("no rule allows it", "没有规则允许它", "沒有規則允許它"),
    "outside": ("it reads outside the workspace", "它读取工作区以外的内容", "它讀取工作區以外的內容"),
    "outside_at": (
        "it reads outside the workspace: {rule}",
        "它读取工作区以外的内容：{rule}",
        "它讀取工作區以外的內容：{rule}",
    ),
    "unread": ("it cannot be told what it would read", "无法判断它会读取什么", "無法判斷它會讀取什麼"),
    "untold": (
        "it cannot be told what it would do",
        "无法判断它会做什么",
        "無法判斷它會做什麼",
    ),
    "asks": ("the rule {rule} asks", "规则 {rule} 要求询问", "規則 {rule} 要求詢問"),
    "denied": (
        "it cannot be told whether {rule} denies it",
        "无法判断 {rule} 是否禁止它",
        "無法判斷 {rule} 是否禁止它",
    ),
    "denies": ("the rule {rule} denies it", "规则 {rule} 禁止它", "規則 {rule} 禁止它"),
    "allows": ("the rule {rule} allows it", "规则 {rule} 允许它", "規則 {rule} 允許它"),
    "allowed_by": ("allowed by {rule}", "由 {rule} 允许", "由 {rule} 允許"),
    "reads": ("it only reads", "它只读取", "它只讀取"),
    "question": ("it is a question to a person", "它是对人的提问", "它是對人的提問"),
    "session_only": (
        "it changes nothing but its own session",
        "它只改动自己的会话",
        "它只改動自己的工作階段",
    ),
    "edits": (
        "mode acceptEdits lets edits inside the workspace pass",
        "acceptEdits 模式放行工作区内的编辑",
        "acceptEdits 模式放行工作區內的編輯",
    ),
    "plan": ("mode plan lets only readers run", "plan 模式只执行读取", "plan 模式只執行讀取"),
    "bypass": ("mode bypassPermissions", "bypassPermissions 模式", "bypassPermissions 模式"),
    "unasked": (
        "{rule}; mode dontAsk refuses instead of asking",
        "{rule}；dontAsk 模式以拒绝代替询问",
        "{rule}；dontAsk 模式以拒絕代替詢問",
    ),
}
"""Why a call is allowed, asked about or denied; the English is the sentence that the record holds."""


def answer(key: str, language: str, **values: Any) -> str:
    """One of the short answers with its values."""
    return in_language(ANSWERS[key], language).format(**values)


def why_asked(recorded: str, language: str) -> str:
    """The recorded reason of a question in this language; one of a newer version stays as it is."""
    for texts in WHY.values():
        head, place, tail = texts[0].partition("{rule}")
        if recorded == texts[0] or (
            place
            and recorded.startswith(head)
            and recorded.endswith(tail)
            and len(recorded) > len(head + tail)
        ):
            rule = recorded[len(head) : len(recorded) - len(tail)]
            rule = why_asked(rule, language) if not head else rule
            return in_language(texts, language).format(rule=rule)
    return recorded


def key_help(language: str) -> list[str]:
    """The lines of `?`."""
    return [in_language(texts, language) for texts in KEYS]


def slash_help(language: str) -> list[list[str]]:
    """The rows of `/help`."""
    return [[name, in_language(texts, language)] for name, texts in SLASH.items()]
