"""What the doctor says in the two Chinese languages, by its English text, as data. Pure.

Owns: summaries, causes and remedies of its checks. Does not own: the checks (`cli.doctor`).
"""

from __future__ import annotations

from collections.abc import Mapping

CHECKS: Mapping[str, tuple[str, str]] = {
    "could not be checked: {error}": ("无法检查：{error}", "無法檢查：{error}"),
    "cannot be read": ("无法读取", "無法讀取"),
    "unreadable": ("无法读取", "無法讀取"),
    (
        "full: the user and all parents up to the first process; what detached itself keeps its "
        "supervisor above it"
    ): (
        "full：检查用户和直到首个进程的全部父进程；自行脱离的进程上方仍有它的监管进程",
        "full：檢查使用者和直到首個行程的全部父行程；自行脫離的行程上方仍有它的監管行程",
    ),
    "partial: the user and the parents that can be seen; what stands above them is not known": (
        "partial：检查用户和能看到的父进程；再往上的不得而知",
        "partial：檢查使用者和能看到的父行程；再往上的不得而知",
    ),
    "none: the user alone, so no press counts as that of a person": (
        "none：只检查用户，所以没有任何操作算作人的决定",
        "none：只檢查使用者，所以沒有任何操作算作人的決定",
    ),
    "no decision can be made here: parents of a process cannot be read": (
        "这里无法做出决定：读不到进程的父进程",
        "這裡無法做出決定：讀不到行程的父行程",
    ),
    "parents of another account are hidden here": (
        "这里隐藏了其他账户的父进程",
        "這裡隱藏了其他帳戶的父行程",
    ),
    "mount /proc": ("挂载 /proc", "掛載 /proc"),
    "mount /proc without hidepid": ("挂载 /proc 时不使用 hidepid", "掛載 /proc 時不使用 hidepid"),
    "read; user file {file}": ("已读取；用户文件 {file}", "已讀取；使用者檔案 {file}"),
    "{root} is trusted": ("{root} 已受信任", "{root} 已受信任"),
    "{root} is not trusted; its settings files are left out": (
        "{root} 未受信任，未采用它的设置文件",
        "{root} 未受信任，未採用它的設定檔案",
    ),
    "{root} is not trusted, so this was left out: {names}. `surefoot trust {again}` accepts it.": (
        "{root} 未受信任，所以未采用：{names}。`surefoot trust {again}` 会接受它。",
        "{root} 未受信任，所以未採用：{names}。`surefoot trust {again}` 會接受它。",
    ),
    "{root} has no settings files of its own": (
        "{root} 没有自己的设置文件",
        "{root} 沒有自己的設定檔案",
    ),
    "no model is configured": ("没有配置模型", "沒有配置模型"),
    "asks {model} at {url}": ("使用 {model}，位于 {url}", "使用 {model}，位於 {url}"),
    "this machine": ("本机", "本機"),
    "the variable {name} is not set": ("变量 {name} 没有设置", "變數 {name} 沒有設定"),
    "not begun yet": ("还没有开始", "還沒有開始"),
    "{count} ledger, {sessions}": ("{count} 份账本，{sessions}", "{count} 份帳本，{sessions}"),
    "{count} ledgers, {sessions}": ("{count} 份账本，{sessions}", "{count} 份帳本，{sessions}"),
    "{count} session": ("{count} 个会话", "{count} 個工作階段"),
    "{count} sessions": ("{count} 个会话", "{count} 個工作階段"),
    "{count} session, {calls}": ("{count} 个会话，{calls}", "{count} 個工作階段，{calls}"),
    "{count} sessions, {calls}": ("{count} 个会话，{calls}", "{count} 個工作階段，{calls}"),
    "{count} open call": ("{count} 次未决调用", "{count} 次未決呼叫"),
    "{count} open calls": ("{count} 次未决调用", "{count} 次未決呼叫"),
    "chain and witness agree": ("链和见证一致", "鏈和見證一致"),
    "{folder} is not made yet": ("{folder} 还没有建立", "{folder} 還沒有建立"),
    "others may read the ledger": ("其他人可以读取账本", "其他人可以讀取帳本"),
    "the ledger lies on a network file system": ("账本位于网络文件系统上", "帳本位於網路檔案系統上"),
    "nothing can be written in {folder}": ("{folder} 中无法写入", "{folder} 中無法寫入"),
    "{mib} MiB free": ("可用 {mib} MiB", "可用 {mib} MiB"),
    "no tool starts below {mib} MiB": ("低于 {mib} MiB 时不开始任何工具", "低於 {mib} MiB 時不開始任何工具"),
    "apsw {driver}, SQLite {version}": ("apsw {driver}，SQLite {version}", "apsw {driver}，SQLite {version}"),
    "this SQLite may lose a commit": ("这个 SQLite 可能丢失提交", "這個 SQLite 可能遺失提交"),
    "{count} call may have happened; {told}": (
        "{count} 次调用可能已发生；{told}",
        "{count} 次呼叫可能已發生；{told}",
    ),
    "{count} calls may have happened; {told}": (
        "{count} 次调用可能已发生；{told}",
        "{count} 次呼叫可能已發生；{told}",
    ),
    "decide before you install an older version, which promises nothing about them": (
        "安装旧版本之前请先决定，旧版本对它们没有任何保证",
        "安裝舊版本之前請先決定，舊版本對它們沒有任何保證",
    ),
    "lost or unreadable: {names}": ("丢失或无法读取：{names}", "遺失或無法讀取：{names}"),
    "{count} command listed in the background": (
        "{count} 个命令列为在后台运行",
        "{count} 個命令列為在背景執行",
    ),
    "{count} commands listed in the background": (
        "{count} 个命令列为在后台运行",
        "{count} 個命令列為在背景執行",
    ),
    "commands end with {borders}": (
        "以下情况会连同命令一起结束：{borders}",
        "以下情況會連同命令一起結束：{borders}",
    ),
    "this container": ("这个容器停止", "這個容器停止"),
    "this service unit": ("这个服务单元停止", "這個服務單元停止"),
    "the clean-up of this CI job": ("这个 CI 任务的清理", "這個 CI 任務的清理"),
    "a logout, where the login manager kills user processes": (
        "注销（登录管理器会终止用户进程时）",
        "登出（登入管理器會終止使用者行程時）",
    ),
    "an out-of-memory kill of the group": ("整个进程组因内存不足被终止", "整個行程群組因記憶體不足被終止"),
    "{encoding}, TERM={term}": ("{encoding}，TERM={term}", "{encoding}，TERM={term}"),
    "marks are drawn in ASCII": ("标记用 ASCII 绘制", "標記用 ASCII 繪製"),
    "the small built-in model is installed": ("内置小模型已安装", "內建小模型已安裝"),
    "the small built-in model is not installed": ("内置小模型未安装", "內建小模型未安裝"),
    "this system has no boot clock": ("这个系统没有启动时钟", "這個系統沒有啟動時鐘"),
    "up for {seconds} s": ("已运行 {seconds} 秒", "已執行 {seconds} 秒"),
    "the wall clock is far behind": ("系统时间严重滞后", "系統時間嚴重滯後"),
    "others may enter the socket folder": ("其他人可以进入套接字文件夹", "其他人可以進入通訊端資料夾"),
    "move it with SUREFOOT_HOME": ("用 SUREFOOT_HOME 移动它", "用 SUREFOOT_HOME 移動它"),
    "local time zone {zone}": ("本地时区 {zone}", "本地時區 {zone}"),
    "the grammar of the shell is installed": ("shell 语法已安装", "shell 語法已安裝"),
    "the grammar of the shell is not installed": ("shell 语法未安装", "shell 語法未安裝"),
    "no shell command can be classified": ("无法判断任何 shell 命令的类别", "無法判斷任何 shell 命令的類別"),
    "Python {version} on {system}": ("Python {version}，系统 {system}", "Python {version}，系統 {system}"),
    "programs found: {names}": ("找到的程序：{names}", "找到的程式：{names}"),
    "without bash the shell tool cannot run": (
        "没有 bash，shell 工具无法运行",
        "沒有 bash，shell 工具無法執行",
    ),
    "install bash": ("安装 bash", "安裝 bash"),
    "variables of surefoot set: {count}": (
        "已设置的 surefoot 变量：{count}",
        "已設定的 surefoot 變數：{count}",
    ),
    "colour is switched off": ("颜色已关闭", "顏色已關閉"),
    "colour is written on a terminal": ("在终端输出颜色", "在終端機輸出顏色"),
    "a person can be asked here": ("这里可以向人提问", "這裡可以向人提問"),
    "nobody can be asked here": ("这里无法向人提问", "這裡無法向人提問"),
    "{columns} columns, {lines} rows": ("{columns} 列，{lines} 行", "{columns} 欄，{lines} 列"),
    "a card needs 40 columns and 24 rows": ("卡片需要 40 列 24 行", "卡片需要 40 欄 24 列"),
    "make the window larger": ("放大窗口", "放大視窗"),
    "endpoints: {count}, with their key: {ready}": (
        "端点：{count}，有密钥：{ready}",
        "端點：{count}，有金鑰：{ready}",
    ),
    "the journal is the write-ahead log": ("日志方式为预写日志", "日誌方式為預寫日誌"),
    "the ledger's file does not begin as SQLite's do": (
        "账本文件的开头不是 SQLite 的格式",
        "帳本檔案的開頭不是 SQLite 的格式",
    ),
    "copy the ledger's folder aside": ("把账本文件夹复制到别处", "把帳本資料夾複製到別處"),
    "another program changed the journal of this ledger": (
        "别的程序改变了这份账本的日志方式",
        "別的程式改變了這份帳本的日誌方式",
    ),
    "{size} KiB in the write-ahead log": ("预写日志 {size} KiB", "預寫日誌 {size} KiB"),
    "a reader keeps the log from being taken in": ("有读取者使日志无法并入", "有讀取者使日誌無法併入"),
    "end old readers of the ledger": ("结束账本的旧读取者", "結束帳本的舊讀取者"),
    "MCP servers in the settings: {names}": ("设置中的 MCP 服务器：{names}", "設定中的 MCP 伺服器：{names}"),
    "{count} open in a living process": ("{count}正由存活的进程打开", "{count}正由存活的行程開啟"),
    "the ledger is ahead of the wall clock": ("账本的时间超前于系统时间", "帳本的時間超前於系統時間"),
    "barrier {level}, on_unknown {word}": (
        "barrier {level}，on_unknown {word}",
        "barrier {level}，on_unknown {word}",
    ),
    "no write waits for an open call": ("没有写入会等待未决调用", "沒有寫入會等待未決呼叫"),
    "hooks in force: {count}": ("生效的钩子：{count}", "生效的掛鉤：{count}"),
    "instruction files read: {count}": ("已读取的指令文件：{count}", "已讀取的指令檔案：{count}"),
    "packs in force: {names}": ("生效的包：{names}", "生效的套件：{names}"),
    "permission mode {mode}, {rules}": ("权限模式 {mode}，{rules}", "權限模式 {mode}，{rules}"),
    "{count} rule": ("{count} 条规则", "{count} 條規則"),
    "{count} rules": ("{count} 条规则", "{count} 條規則"),
    "everything that no deny rule names runs without a question": (
        "没有被拒绝规则列出的一切都会不经询问地运行",
        "沒有被拒絕規則列出的一切都會不經詢問地執行",
    ),
    "shorten them": ("缩短它们", "縮短它們"),
    "make room": ("腾出空间", "騰出空間"),
    "overall: {status}": ("总体：{status}", "總體：{status}"),
    "set the clock": ("校正时钟", "校正時鐘"),
    "install the newer surefoot": ("安装更新的 surefoot", "安裝更新的 surefoot"),
    "{project}: SF-{code}: {error}": ("{project}：SF-{code}：{error}", "{project}：SF-{code}：{error}"),
}
"""English → 简体, 繁體."""
