"""The words around tools and rules in three languages, as data. Pure.

Owns: what each row of the reading environment is called, what it changes for a reader, what it cannot
promise (UX-159); how it is told which rule decides (UX-44). Does not own: the environment itself
(`tools.classify.environment`), the ruling (`ruling`), its reason (`words_chat`).
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.surfaces.words_table import Texts

READING_ROWS: Mapping[str, Texts] = {
    "path": (
        "search path: absolute parts only, else",
        "搜索路径：只留绝对路径，否则",
        "搜尋路徑：只留絕對路徑，否則",
    ),
    "dropped": ("variables that are not passed on", "不传递的变量", "不傳遞的變數"),
    "set": ("variables that are set", "设定的变量", "設定的變數"),
    "shell": ("shell, without profile and startup files", "shell，不读启动文件", "shell，不讀啟動檔案"),
    "git_options": ("options put into the line", "加入命令行的选项", "加入命令列的選項"),
    "git_settings": ("settings of git that hold", "生效的 git 设置", "生效的 git 設定"),
    "git_named": (
        "the same for names of the project's choice",
        "项目自取名称的同类设置",
        "專案自取名稱的同類設定",
    ),
    "git_refused": (
        "settings that nothing keeps out: such a command is UNKNOWN",
        "无法挡住的设置：这样的命令是 UNKNOWN",
        "無法擋住的設定：這樣的命令是 UNKNOWN",
    ),
    "projects": (
        "files of a project that may make its package client run something: such a command is UNKNOWN",
        "可能让项目的包管理程序运行其他东西的文件：这样的命令是 UNKNOWN",
        "可能讓專案的套件管理程式執行其他東西的檔案：這樣的命令是 UNKNOWN",
    ),
    "databases": (
        "database clients, kept to reading by the server",
        "数据库客户端，由服务器限制为只读",
        "資料庫用戶端，由伺服器限制為唯讀",
    ),
}
"""Row of `environment_rows` → what it is called."""

READING_NOTES: Mapping[str, Texts] = {
    "head": (
        "Reading environment: every command classed READ_ONLY runs in it.",
        "读取环境：每个归为 READ_ONLY 的命令都在其中执行。",
        "讀取環境：每個歸為 READ_ONLY 的命令都在其中執行。",
    ),
    "changes": (
        "What this changes for a reader: no pager and no colours of one, differences and file contents as they are"
        " stored and not as a tool of the project shows them, changes inside of submodules not looked for, no aliases"
        " and functions of your shell, no lock taken, no question asked.",
        "对读取的影响：没有分页程序，差异和文件内容按存储的样子显示而不经项目的工具转换，不查看子模块内部的改动，"
        "没有你的 shell 的别名和函数，不加锁，不提问。",
        "對讀取的影響：沒有分頁程式，差異和檔案內容按儲存的樣子顯示而不經專案的工具轉換，不查看子模組內部的改動，"
        "沒有你的 shell 的別名和函式，不加鎖，不提問。",
    ),
    "get": (
        "A GET counts as reading and may still have effects at the far side: nothing here keeps a server from that.",
        "GET 算作读取，但在远端仍可能有影响：这里没有办法阻止服务器。",
        "GET 算作讀取，但在遠端仍可能有影響：這裡沒有辦法阻止伺服器。",
    ),
}

RULINGS: Mapping[str, Texts] = {
    "allow": ("allowed", "允许", "允許"),
    "ask": ("asked about", "询问", "詢問"),
    "deny": ("denied", "禁止", "禁止"),
    "rule": ("rule {rule} in {name}", "规则 {rule}，在 {name} 中", "規則 {rule}，在 {name} 中"),
    "no_rule": (
        "no rule decides; mode {mode}: {origin}",
        "没有规则决定；模式 {mode}：{origin}",
        "沒有規則決定；模式 {mode}：{origin}",
    ),
    "written": ("written in {where}", "写在 {where}", "寫在 {where}"),
    "call": (
        "tool {tool}, class {kind}, reach {reach}",
        "工具 {tool}，类别 {kind}，范围 {reach}",
        "工具 {tool}，類別 {kind}，範圍 {reach}",
    ),
}
"""What `config check --explain` says."""
