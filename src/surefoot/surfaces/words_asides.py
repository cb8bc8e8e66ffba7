"""What is told without a code, in the two Chinese languages, by its English text, as data. Pure.

Owns: one row per question of the command line, warning about settings, finding about a ledger or a pack, line of
a small command, and what the built-in tools say of themselves. Does not own: sentences with a code
(`words_mistakes`, `words_faults`), how a row is found (`phrases`). English is what the code that tells it says itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.surfaces.words_table import Texts

QUESTIONS: Mapping[str, tuple[str, str]] = {
    "{root} has files that change settings or start programs: {names}.": (
        "{root} 中有会改变设置或启动程序的文件：{names}。",
        "{root} 中有會改變設定或啟動程式的檔案：{names}。",
    ),
    "Trust them as they are now?": ("信任它们现在的内容吗？", "信任它們現在的內容嗎？"),
    "Allow it?": ("允许它吗？", "允許它嗎？"),
    "Answer y or n.": ("请回答 y 或 n。", "請回答 y 或 n。"),
    "Every call it is running will count as one that may have happened.": (
        "它正在进行的每次调用都将算作可能已发生。",
        "它正在進行的每次呼叫都將算作可能已發生。",
    ),
    "Type {session_id} to take it over": ("要接管请输入 {session_id}", "要接管請輸入 {session_id}"),
    "It is moved into a folder beside the new one, whole; nothing of it is deleted.": (
        "它会被完整地移到新账本旁边的目录里，不会删除任何内容。",
        "它會被完整地移到新帳本旁邊的目錄裡，不會刪除任何內容。",
    ),
    "Type {name} to begin a new ledger": ("要建立新账本请输入 {name}", "要建立新帳本請輸入 {name}"),
}
"""What a person at a terminal is asked, and what is said before it."""

WARNINGS: Mapping[str, tuple[str, str]] = {
    "{where}: {path} is not a setting of surefoot": (
        "{where}：{path} 不是 surefoot 的设置项",
        "{where}：{path} 不是 surefoot 的設定項",
    ),
    "{where}: {path} is not a setting of surefoot; did you mean {near}?": (
        "{where}：{path} 不是 surefoot 的设置项，你是想写 {near} 吗？",
        "{where}：{path} 不是 surefoot 的設定項，你是想寫 {near} 嗎？",
    ),
    "{where}: {path} was ignored: {why}.": (
        "{where}：{path} 已忽略：{why}。",
        "{where}：{path} 已忽略：{why}。",
    ),
    "only your own settings may set this": ("只有你自己的设置可以设定它", "只有你自己的設定可以設定它"),
    "only your own settings may say what a hook does": (
        "只有你自己的设置可以规定挂钩做什么",
        "只有你自己的設定可以規定掛鉤做什麼",
    ),
    "a project may not allow {rules}": ("项目不能允许 {rules}", "專案不能允許 {rules}"),
    "a project may tighten the class of a tool, never loosen it": (
        "项目可以收紧工具的类别，不能放宽",
        "專案可以收緊工具的類別，不能放寬",
    ),
    "a project may widen the reach of a tool to *, never narrow it": (
        "项目可以把工具的范围扩大到 *，不能缩小",
        "專案可以把工具的範圍擴大到 *，不能縮小",
    ),
    "{root} is not trusted, so this was left out: {names}. `surefoot trust {again}` accepts it.": (
        "{root} 未受信任，因此没有采用：{names}。用 `surefoot trust {again}` 接受。",
        "{root} 未受信任，因此沒有採用：{names}。用 `surefoot trust {again}` 接受。",
    ),
    "{where}: the rule {rule} means no tool; did you mean {near}?": (
        "{where}：规则 {rule} 不对应任何工具，你是想写 {near} 吗？",
        "{where}：規則 {rule} 不對應任何工具，你是想寫 {near} 嗎？",
    ),
    "{where}: the rule {rule} means no tool; see surefoot tools": (
        "{where}：规则 {rule} 不对应任何工具，见 surefoot tools",
        "{where}：規則 {rule} 不對應任何工具，見 surefoot tools",
    ),
    "--tools: {name} means no tool; did you mean {near}?": (
        "--tools：{name} 不是工具，你是想写 {near} 吗？",
        "--tools：{name} 不是工具，你是想寫 {near} 嗎？",
    ),
    "--tools: {name} means no tool; see surefoot tools": (
        "--tools：{name} 不是工具，见 surefoot tools",
        "--tools：{name} 不是工具，見 surefoot tools",
    ),
    "{where} names {name}, which is no tool; did you mean {near}?": (
        "{where} 写的 {name} 不是工具，你是想写 {near} 吗？",
        "{where} 寫的 {name} 不是工具，你是想寫 {near} 嗎？",
    ),
    "{where} names {name}, which is no tool; see surefoot tools": (
        "{where} 写的 {name} 不是工具，见 surefoot tools",
        "{where} 寫的 {name} 不是工具，見 surefoot tools",
    ),
}
"""What is told of settings that do not hold."""

FINDINGS: Mapping[str, tuple[str, str]] = {
    "{project}: ok · {sessions} sessions, {entries} entries, {blobs} blobs": (
        "{project}：完好 · {sessions} 个会话，{entries} 条记录，{blobs} 个数据块",
        "{project}：完好 · {sessions} 個工作階段，{entries} 筆記錄，{blobs} 個資料塊",
    ),
    "{project}: {count} findings · {sessions} sessions, {entries} entries, {blobs} blobs": (
        "{project}：{count} 处异常 · {sessions} 个会话，{entries} 条记录，{blobs} 个数据块",
        "{project}：{count} 處異常 · {sessions} 個工作階段，{entries} 筆記錄，{blobs} 個資料塊",
    ),
    "  {code}: {session} at {position}: {detail}": (
        "  {code}：{session} 第 {position} 条：{detail}",
        "  {code}：{session} 第 {position} 筆：{detail}",
    ),
    "{ref} is named by an entry and not there": (
        "有记录提到 {ref}，但它不存在",
        "有記錄提到 {ref}，但它不存在",
    ),
    "the witness saw entry {seen}, the ledger ends at {position}": (
        "见证文件见过第 {seen} 条记录，账本止于第 {position} 条",
        "見證檔見過第 {seen} 筆記錄，帳本止於第 {position} 筆",
    ),
    "entry {position} is not the one the witness saw": (
        "第 {position} 条记录与见证文件见过的不同",
        "第 {position} 筆記錄與見證檔見過的不同",
    ),
    "a lost tail could not be noticed": ("丢失的末尾将无法察觉", "遺失的結尾將無法察覺"),
    "only the witness knows this session": ("只有见证文件知道这个会话", "只有見證檔知道這個工作階段"),
    "record {count} cannot be read": ("第 {count} 条见证无法读取", "第 {count} 筆見證無法讀取"),
    "position {count} is missing": ("缺少第 {count} 条记录", "缺少第 {count} 筆記錄"),
    "entry {count} has neither payload nor digest": (
        "第 {count} 条记录既没有内容也没有摘要",
        "第 {count} 筆記錄既沒有內容也沒有摘要",
    ),
    "entry {count} does not follow from the one before it": (
        "第 {count} 条记录与前一条不相接",
        "第 {count} 筆記錄與前一筆不相接",
    ),
    "Registry and packs agree.": ("工具注册表与规则包一致。", "工具登錄表與規則包一致。"),
    "no declaration and no pack names its class": (
        "没有声明也没有规则包指明它的类别",
        "沒有宣告也沒有規則包指明它的類別",
    ),
    "pack {pack} marks it registered; no tool has that name": (
        "规则包 {pack} 标明它已注册，但没有叫这个名字的工具",
        "規則包 {pack} 標明它已登錄，但沒有叫這個名字的工具",
    ),
    "alias {alias} of {name} is a tool of its own ({told})": (
        "{name} 的别名 {alias} 本身是一个工具（{told}）",
        "{name} 的別名 {alias} 本身是一個工具（{told}）",
    ),
    "{key} is {actual}, declared {value}": (
        "{key} 是 {actual}，声明为 {value}",
        "{key} 是 {actual}，宣告為 {value}",
    ),
    "{key} is not known to this version": ("这个版本不认识 {key}", "這個版本不認識 {key}"),
    "{attempt} was started as {stored}, now {now}": (
        "{attempt} 启动时是 {stored}，现在是 {now}",
        "{attempt} 啟動時是 {stored}，現在是 {now}",
    ),
}
"""What `ledger verify` and `tools check` found."""

LINES: Mapping[str, tuple[str, str]] = {
    "arguments:": ("参数：", "參數："),
    "--settings: {path} is not a setting of surefoot.": (
        "--settings：{path} 不是 surefoot 的设置项。",
        "--settings：{path} 不是 surefoot 的設定項。",
    ),
    "settings: ok": ("设置：正常", "設定：正常"),
    "settings: {count} warning": ("设置：{count} 条警告", "設定：{count} 則警告"),
    "settings: {count} warnings": ("设置：{count} 条警告", "設定：{count} 則警告"),
    "{root}: trusted ({names})": ("{root}：已信任（{names}）", "{root}：已信任（{names}）"),
    "{root}: no longer trusted ({names})": ("{root}：不再信任（{names}）", "{root}：不再信任（{names}）"),
    "no settings files yet": ("还没有设置文件", "還沒有設定檔案"),
    "forked: {forked}": ("已复制为：{forked}", "已複製為：{forked}"),
    "go on: {command}": ("继续：{command}", "繼續：{command}"),
    "Nothing of this run is kept: no receipts, no resume, no card after a kill. Only readers are offered.": (
        "这次运行什么都不保留：没有凭据，不能继续，被终止后也没有卡片。只提供读取的工具。",
        "這次執行什麼都不保留：沒有憑據，不能繼續，被終止後也沒有卡片。只提供讀取的工具。",
    ),
    "Line {number} of standard input is no message of a user; it is left out.": (
        "标准输入第 {number} 行不是用户的消息，已略过。",
        "標準輸入第 {number} 行不是使用者的訊息，已略過。",
    ),
    "Nothing came on standard input; going on with the prompt alone.": (
        "标准输入没有内容，只用提示词继续。",
        "標準輸入沒有內容，只用提示詞繼續。",
    ),
    "The last answer was not written to {target}: {error}.": (
        "最后的回答没有写入 {target}：{error}。",
        "最後的回答沒有寫入 {target}：{error}。",
    ),
    "{word} shows nothing here": ("{word} 在这里没有可显示的内容", "{word} 在這裡沒有可顯示的內容"),
    "starting the local model {name} ({size} MB, {threads} threads)": (
        "正在启动本地模型 {name}（{size} MB，{threads} 个线程）",
        "正在啟動本機模型 {name}（{size} MB，{threads} 個執行緒）",
    ),
    "the local model {name} is ready": ("本地模型 {name} 已就绪", "本機模型 {name} 已就緒"),
}
"""Lines of commands."""

TOOLS: Mapping[str, tuple[str, str]] = {
    "by arguments": ("取决于参数", "取決於參數"),
    "Read a text file with line numbers, at most 2000 lines at once; go on with `offset`": (
        "读取文本文件并带行号，一次最多 2000 行；用 `offset` 继续",
        "讀取文字檔案並帶行號，一次最多 2000 行；用 `offset` 繼續",
    ),
    "List one folder: names, kinds and sizes": (
        "列出一个目录：名称、种类和大小",
        "列出一個目錄：名稱、種類和大小",
    ),
    (
        "Find files by a name pattern such as `src/**/*.py` or `**/*.{ts,tsx}`, relative to `path`; newest first"
    ): (
        "按名称模式查找文件，如 `src/**/*.py` 或 `**/*.{{ts,tsx}}`，相对于 `path`，最新的在前",
        "按名稱模式尋找檔案，如 `src/**/*.py` 或 `**/*.{{ts,tsx}}`，相對於 `path`，最新的在前",
    ),
    "Search text files line by line with a regular expression (Python syntax)": (
        "用正则表达式（Python 语法）逐行搜索文本文件",
        "用正規表示式（Python 語法）逐行搜尋文字檔案",
    ),
    "Write a text file: `overwrite` (default) gives it exactly this content, `append` adds at its end": (
        "写文本文件：`overwrite`（默认）使它正好是这些内容，`append` 加在末尾",
        "寫文字檔案：`overwrite`（預設）使它正好是這些內容，`append` 加在結尾",
    ),
    "Replace one exact piece of text in a file": (
        "替换文件中一段完全一致的文本",
        "替換檔案中一段完全一致的文字",
    ),
    "Make several replacements in one file, one after another, all or none": (
        "在一个文件中依次做多处替换，要么全做，要么全不做",
        "在一個檔案中依次做多處替換，要麼全做，要麼全不做",
    ),
    "Delete a file, a symbolic link (not what it leads to) or an empty folder": (
        "删除文件、符号链接（不含它指向的内容）或空目录",
        "刪除檔案、符號連結（不含它指向的內容）或空目錄",
    ),
    "Move or rename a file, link or folder": (
        "移动或重命名文件、链接或目录",
        "移動或重新命名檔案、連結或目錄",
    ),
    "Make a folder, and the folders above it that are missing": (
        "建立目录，以及它上层缺少的目录",
        "建立目錄，以及它上層缺少的目錄",
    ),
    "Run a command with bash in the working directory": (
        "在工作目录中用 bash 执行命令",
        "在工作目錄中用 bash 執行命令",
    ),
    "List commands running in the background, read the log of one, or stop one.": (
        "列出在后台运行的命令，读取其中一个的日志，或停止它。",
        "列出在背景執行的命令，讀取其中一個的日誌，或停止它。",
    ),
    "Ask the person one question and wait for the answer": (
        "向用户提一个问题并等待回答",
        "向使用者提一個問題並等待回答",
    ),
    "Replace your task list for this session": (
        "替换本会话的任务清单",
        "替換本工作階段的任務清單",
    ),
    (
        "Calls whose outcome is unknown: `list` them, `inspect` one (its record, arguments redacted, local evidence), "
        "or `report` what you found by read-only looks, naming the attempt ids of those reads"
    ): (
        "结果不明的调用：`list` 列出它们，`inspect` 查看其中一个（它的记录、脱敏的参数、本地证据），"
        "或用 `report` 报告只读查看的发现，并写明那些读取的编号",
        "結果不明的呼叫：`list` 列出它們，`inspect` 查看其中一個（它的記錄、遮蔽的參數、本機證據），"
        "或用 `report` 報告唯讀查看的發現，並寫明那些讀取的編號",
    ),
}
"""What `surefoot tools` says of the tools of surefoot itself."""

ORIGINS: Mapping[str, Texts] = {
    "built in": ("built in", "内置", "內建"),
    "user": ("user", "用户", "使用者"),
    "project shared": ("project shared", "项目共用", "專案共用"),
    "project own": ("project own", "项目个人", "專案個人"),
    "managed": ("managed", "集中管理", "集中管理"),
    "final": ("final", "不可更改", "不可更改"),
    "environment": ("environment", "环境变量", "環境變數"),
    "flags": ("flags", "命令行", "命令列"),
}
"""Where a setting comes from; words too short to be found inside of a sentence, so they are asked for by themselves."""
