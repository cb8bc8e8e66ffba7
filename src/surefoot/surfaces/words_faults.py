"""What went wrong in a ledger or a provider, in the two Chinese languages, by its English text, as data. Pure.

Owns: one row per such sentence with an `SF-` code, and the parts they are put together from. Does not own:
mistakes of a person (`words_mistakes`), how a row is found (`phrases`).
"""

from __future__ import annotations

from collections.abc import Mapping

FAULTS: Mapping[str, tuple[str, str]] = {
    (
        "an earlier commit of this ledger is not certain yet, so nothing new was written; free or "
        "mend the disk and try again ({error})"
    ): (
        "这份账本之前的一次提交还不确定，所以没有写入新的内容；请清理或修复磁盘后再试（{error}）",
        "這份帳本之前的一次提交還不確定，所以沒有寫入新的內容；請清理或修復磁碟後再試（{error}）",
    ),
    "the flush broke off; nothing was told as written": (
        "写入中断，没有任何内容被当作已写入",
        "寫入中斷，沒有任何內容被當作已寫入",
    ),
    "there is no ledger in {folder}; start a session there first": (
        "{folder} 中没有账本，请先在那里开始一个会话",
        "{folder} 中沒有帳本，請先在那裡開始一個工作階段",
    ),
    "blob {ref} is not what was stored; run `surefoot ledger verify`": (
        "数据块 {ref} 与存入的不同，请运行 `surefoot ledger verify`",
        "資料塊 {ref} 與存入的不同，請執行 `surefoot ledger verify`",
    ),
    "{ref} is no blob reference; it must be `sha256:` and 64 hex digits": (
        "{ref} 不是数据块引用，应是 `sha256:` 加 64 位十六进制数字",
        "{ref} 不是資料塊引用，應是 `sha256:` 加 64 位十六進位數字",
    ),
    "a blob could not be stored ({reason}); free space and try again": (
        "无法存入数据块（{reason}），请腾出空间后再试",
        "無法存入資料塊（{reason}），請騰出空間後再試",
    ),
    "blob {ref} cannot be read; run `surefoot ledger verify`": (
        "无法读取数据块 {ref}，请运行 `surefoot ledger verify`",
        "無法讀取資料塊 {ref}，請執行 `surefoot ledger verify`",
    ),
    "the history of session {session} does not hold: {broken}; run `surefoot ledger verify`": (
        "会话 {session} 的历史不成立：{broken}；请运行 `surefoot ledger verify`",
        "工作階段 {session} 的歷史不成立：{broken}；請執行 `surefoot ledger verify`",
    ),
    "session {session} changed while it was claimed; try again": (
        "会话 {session} 在取得时发生了变化，请再试一次",
        "工作階段 {session} 在取得時發生了變化，請再試一次",
    ),
    "the ledger {where} refused a statement ({text}); please report this fault": (
        "账本 {where} 拒绝了一条语句（{text}），请报告这个错误",
        "帳本 {where} 拒絕了一則陳述式（{text}），請報告這個錯誤",
    ),
    "another program holds the ledger {where}, nothing was written; try again": (
        "另一个程序占用着账本 {where}，没有写入任何内容，请再试一次",
        "另一個程式佔用著帳本 {where}，沒有寫入任何內容，請再試一次",
    ),
    "the ledger {where} is damaged ({text}); run `surefoot ledger verify`": (
        "账本 {where} 已损坏（{text}），请运行 `surefoot ledger verify`",
        "帳本 {where} 已損壞（{text}），請執行 `surefoot ledger verify`",
    ),
    "the ledger {where} cannot be opened; {reason}": (
        "无法打开账本 {where}；{reason}",
        "無法開啟帳本 {where}；{reason}",
    ),
    "the disk of the ledger {where} failed in a commit; its outcome is not known yet": (
        "账本 {where} 的磁盘在提交时出错，结果还不知道",
        "帳本 {where} 的磁碟在提交時出錯，結果還不知道",
    ),
    "the disk of the ledger {where} is full, nothing was written; free space and try again": (
        "账本 {where} 的磁盘已满，没有写入任何内容，请腾出空间后再试",
        "帳本 {where} 的磁碟已滿，沒有寫入任何內容，請騰出空間後再試",
    ),
    "the ledger {where} cannot be used ({text}); check its disk and permissions": (
        "无法使用账本 {where}（{text}），请检查磁盘和权限",
        "無法使用帳本 {where}（{text}），請檢查磁碟和權限",
    ),
    "the ledger {where} lies under a name that is not UTF-8; choose another folder with SUREFOOT_HOME": (
        "账本 {where} 所在的路径名不是 UTF-8，请用 SUREFOOT_HOME 选择另一个文件夹",
        "帳本 {where} 所在的路徑名稱不是 UTF-8，請用 SUREFOOT_HOME 選擇另一個資料夾",
    ),
    "this SQLite is older than 3.51.3 and may lose commits; install a current apsw": (
        "这个 SQLite 早于 3.51.3，可能丢失提交，请安装新版 apsw",
        "這個 SQLite 早於 3.51.3，可能遺失提交，請安裝新版 apsw",
    ),
    (
        "the ledger {where} has schema {version}, this surefoot knows up to {known}; install a newer surefoot"
    ): (
        "账本 {where} 的格式版本是 {version}，这个 surefoot 最高认识 {known}，请安装更新的 surefoot",
        "帳本 {where} 的格式版本是 {version}，這個 surefoot 最高認識 {known}，請安裝更新的 surefoot",
    ),
    "{where} is no surefoot ledger; check the path": (
        "{where} 不是 surefoot 的账本，请检查路径",
        "{where} 不是 surefoot 的帳本，請檢查路徑",
    ),
    "SQLite cannot keep a write-ahead log beside {where}; use a local disk": (
        "SQLite 无法在 {where} 旁边保存预写日志，请使用本地磁盘",
        "SQLite 無法在 {where} 旁邊儲存預寫日誌，請使用本機磁碟",
    ),
    "the ledger {where} is empty; nothing can be read": (
        "账本 {where} 是空的，没有可读的内容",
        "帳本 {where} 是空的，沒有可讀的內容",
    ),
    "there is no session {session} in this ledger; `surefoot session list` shows all": (
        "这份账本中没有会话 {session}；`surefoot session list` 列出全部",
        "這份帳本中沒有工作階段 {session}；`surefoot session list` 列出全部",
    ),
    (
        "the gate of the ledger ({where}) was held by another process for {seconds} s; look for a "
        "stopped surefoot process and continue or end it"
    ): (
        (
            "账本的闸门（{where}）被另一个进程占用了 {seconds} 秒；请找到暂停的 surefoot 进程，"
            "让它继续或结束它"
        ),
        (
            "帳本的閘門（{where}）被另一個行程佔用了 {seconds} 秒；請找到暫停的 surefoot 行程，"
            "讓它繼續或結束它"
        ),
    ),
    "this ledger handle is closed; open the ledger again": (
        "这个账本句柄已关闭，请重新打开账本",
        "這個帳本控制代碼已關閉，請重新開啟帳本",
    ),
    "the history of session {session} does not hold: {broken}": (
        "会话 {session} 的历史不成立：{broken}",
        "工作階段 {session} 的歷史不成立：{broken}",
    ),
    "blob {ref} is missing or not what was stored; run `surefoot ledger verify`": (
        "数据块 {ref} 缺失或与存入的不同，请运行 `surefoot ledger verify`",
        "資料塊 {ref} 缺失或與存入的不同，請執行 `surefoot ledger verify`",
    ),
    "the session has another owner now; nothing more of it was dropped": (
        "会话现在由另一个进程持有，没有再清除它的内容",
        "工作階段現在由另一個行程持有，沒有再清除它的內容",
    ),
    (
        "the ledger {where} is gone or empty, but its witness knows {sessions} sessions; put the "
        "file back, or run `surefoot ledger begin` to start a new ledger beside what is left"
    ): (
        (
            "账本 {where} 不见了或是空的，但见证文件知道 {sessions} 个会话；请把文件放回去，或运行 "
            "`surefoot ledger begin` 在剩余内容旁开始新的账本"
        ),
        (
            "帳本 {where} 不見了或是空的，但見證檔案知道 {sessions} 個工作階段；請把檔案放回去，或執行 "
            "`surefoot ledger begin` 在剩餘內容旁開始新的帳本"
        ),
    ),
    "there is no ledger at {where}; start a session there first": (
        "{where} 没有账本，请先在那里开始一个会话",
        "{where} 沒有帳本，請先在那裡開始一個工作階段",
    ),
    "the ledger folder {folder} cannot be used ({reason}); check its permissions": (
        "无法使用账本文件夹 {folder}（{reason}），请检查权限",
        "無法使用帳本資料夾 {folder}（{reason}），請檢查權限",
    ),
    "there is no ledger in {folder} to set aside; check the path": (
        "{folder} 中没有可以移开的账本，请检查路径",
        "{folder} 中沒有可以移開的帳本，請檢查路徑",
    ),
    "the files of the ledger were moved or replaced; put them back and try again": (
        "账本的文件被移动或替换了，请放回去后再试",
        "帳本的檔案被移動或替換了，請放回去後再試",
    ),
    "this ledger handle belongs to the process that opened it; open the ledger anew after a fork": (
        "这个账本句柄属于打开它的进程，fork 之后请重新打开账本",
        "這個帳本控制代碼屬於開啟它的行程，fork 之後請重新開啟帳本",
    ),
    ("less than {mib} MiB are free where the ledger lies, so nothing is started; free space and try again"): (
        "账本所在处的可用空间不足 {mib} MiB，所以不开始任何操作；请腾出空间后再试",
        "帳本所在處的可用空間不足 {mib} MiB，所以不開始任何操作；請騰出空間後再試",
    ),
    ("the files of the ledger {where} were moved or replaced while it was open; put them back, or restart"): (
        "账本 {where} 打开期间，它的文件被移动或替换了；请放回去，或重新启动",
        "帳本 {where} 開啟期間，它的檔案被移動或替換了；請放回去，或重新啟動",
    ),
    "another process reads the ledger; claim the session again in a moment": (
        "另一个进程正在读取账本，请稍后再取得会话",
        "另一個行程正在讀取帳本，請稍後再取得工作階段",
    ),
    "the outcome of a commit is not known yet: {error}": (
        "一次提交的结果还不知道：{error}",
        "一次提交的結果還不知道：{error}",
    ),
    "session {session} could not be claimed: {error}": (
        "无法取得会话 {session}：{error}",
        "無法取得工作階段 {session}：{error}",
    ),
    "the ledger refused an entry that breaks one of its rules; please report this fault": (
        "账本拒绝了违反其规则的条目，请报告这个错误",
        "帳本拒絕了違反其規則的條目，請報告這個錯誤",
    ),
    "an append broke off between its entries; nothing was written": (
        "追加在条目之间中断，没有写入任何内容",
        "追加在條目之間中斷，沒有寫入任何內容",
    ),
    "another process reads the ledger; the outcome is not certain yet": (
        "另一个进程正在读取账本，结果还不确定",
        "另一個行程正在讀取帳本，結果還不確定",
    ),
    "the commit failed and its entry is certainly not in the ledger": (
        "提交失败，它的条目确定不在账本中",
        "提交失敗，它的條目確定不在帳本中",
    ),
    ("the disk took neither the start of the retry nor its refusal; free some space and press again"): (
        "磁盘既没有写下重试的开始，也没有写下拒绝；请腾出空间后再按一次",
        "磁碟既沒有寫下重試的開始，也沒有寫下拒絕；請騰出空間後再按一次",
    ),
    (
        "The URL of endpoint {name} is not one that can be asked; it must begin with http:// or "
        "https:// and name a host."
    ): (
        "端点 {name} 的 URL 无法访问；它必须以 http:// 或 https:// 开头并指明主机。",
        "端點 {name} 的 URL 無法使用；它必須以 http:// 或 https:// 開頭並指明主機。",
    ),
    (
        "The proxy or certificate settings of the environment cannot be used (HTTP_PROXY, "
        "HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE); correct or unset them."
    ): (
        (
            "环境中的代理或证书设置无法使用（HTTP_PROXY、HTTPS_PROXY、ALL_PROXY、SSL_CERT_FILE），"
            "请改正或取消。"
        ),
        (
            "環境中的代理或憑證設定無法使用（HTTP_PROXY、HTTPS_PROXY、ALL_PROXY、SSL_CERT_FILE），"
            "請改正或取消。"
        ),
    ),
    (
        "The request was not sent: it has {size} bytes, and the contract of endpoint {name} says that "
        "limits.body_bytes = {most}. Shorten the conversation with /compact, or start a new session."
    ): (
        (
            "请求没有发送：它有 {size} 字节，而端点 {name} 的约定规定 limits.body_bytes = {most}。"
            "请用 /compact 缩短对话，或开始新会话。"
        ),
        (
            "請求沒有傳送：它有 {size} 位元組，而端點 {name} 的約定規定 limits.body_bytes = {most}。"
            "請用 /compact 縮短對話，或開始新的工作階段。"
        ),
    ),
    ("The request was not sent: it breaks {rules} of the contract of endpoint {name} (at {position})."): (
        "请求没有发出：它违反了端点 {name} 的约定中的 {rules}（位置 {position}）。",
        "請求沒有發出：它違反了端點 {name} 的約定中的 {rules}（位置 {position}）。",
    ),
    "The model's server of endpoint {name} ({url}) {said}; nothing of a reply ran.": (
        "端点 {name} 的模型服务器（{url}）{said}；没有执行任何答复内容。",
        "端點 {name} 的模型伺服器（{url}）{said}；沒有執行任何答覆內容。",
    ),
    (
        "The model's server of endpoint {name} was silent too long: limit {limit} = {seconds} s. "
        "Raise it for this endpoint, or stop and try again."
    ): (
        ("端点 {name} 的模型服务器沉默太久：界限 {limit} = {seconds} 秒。请为这个端点调高它，或停止后再试。"),
        ("端點 {name} 的模型伺服器沉默太久：界限 {limit} = {seconds} 秒。請為這個端點調高它，或停止後再試。"),
    ),
    "Header {header} of endpoint {name} holds characters no header can carry.": (
        "端点 {name} 的请求头 {header} 含有请求头不能携带的字符。",
        "端點 {name} 的請求標頭 {header} 含有請求標頭不能攜帶的字元。",
    ),
    "The key of endpoint {name} is empty or holds characters no header can carry.": (
        "端点 {name} 的密钥是空的，或含有请求头不能携带的字符。",
        "端點 {name} 的金鑰是空的，或含有請求標頭不能攜帶的字元。",
    ),
    "The model's server of endpoint {name} ({url}) sent a reply that cannot be decompressed.": (
        "端点 {name} 的模型服务器（{url}）发来的答复无法解压。",
        "端點 {name} 的模型伺服器（{url}）發來的答覆無法解壓縮。",
    ),
    "The model's server of endpoint {name} ({url}) sent more than {mib} MiB.": (
        "端点 {name} 的模型服务器（{url}）发来的内容超过 {mib} MiB。",
        "端點 {name} 的模型伺服器（{url}）發來的內容超過 {mib} MiB。",
    ),
    "Endpoint {name} speaks the wire {wire}, and its contract {contract} is one of another wire.": (
        "端点 {name} 使用接口格式 {wire}，而它的约定 {contract} 属于另一种格式。",
        "端點 {name} 使用介面格式 {wire}，而它的約定 {contract} 屬於另一種格式。",
    ),
    "Session {session} belongs to {directory}.": (
        "会话 {session} 属于 {directory}。",
        "工作階段 {session} 屬於 {directory}。",
    ),
    "No contract is called {name}. Known: {known}.": (
        "没有名为 {name} 的约定。已知：{known}。",
        "沒有名為 {name} 的約定。已知：{known}。",
    ),
    "No contract is called {name}. Did you mean {near}? Known: {known}.": (
        "没有名为 {name} 的约定。是否想写 {near}？已知：{known}。",
        "沒有名為 {name} 的約定。是否想寫 {near}？已知：{known}。",
    ),
    "No contract is called {name} (a base of {asked}). Known: {known}.": (
        "没有名为 {name} 的约定（{asked} 的基础）。已知：{known}。",
        "沒有名為 {name} 的約定（{asked} 的基礎）。已知：{known}。",
    ),
    "No contract is called {name} (a base of {asked}). Did you mean {near}? Known: {known}.": (
        "没有名为 {name} 的约定（{asked} 的基础）。是否想写 {near}？已知：{known}。",
        "沒有名為 {name} 的約定（{asked} 的基礎）。是否想寫 {near}？已知：{known}。",
    ),
    "effort {word} of endpoint {name} is not known to its contract {contract}; {said}.": (
        "端点 {name} 的 effort {word} 不为它的约定 {contract} 所知；{said}。",
        "端點 {name} 的 effort {word} 不為它的約定 {contract} 所知；{said}。",
    ),
    "contract {contract} and its bases do not give the key {key}.": (
        "约定 {contract} 和它的基础没有给出键 {key}。",
        "約定 {contract} 和它的基礎沒有給出鍵 {key}。",
    ),
    "{place}: [contract] needs schema = 1.": (
        "{place}：[contract] 需要 schema = 1。",
        "{place}：[contract] 需要 schema = 1。",
    ),
    "{place}: schema {schema} is newer than this surefoot reads (1); update surefoot.": (
        "{place}：schema {schema} 比这个 surefoot 能读的（1）新，请更新 surefoot。",
        "{place}：schema {schema} 比這個 surefoot 能讀的（1）新，請更新 surefoot。",
    ),
    "{place}: contract.id must look like 'profile/wire', e.g. 'acme/chat'.": (
        "{place}：contract.id 必须形如 'profile/wire'，例如 'acme/chat'。",
        "{place}：contract.id 必須形如 'profile/wire'，例如 'acme/chat'。",
    ),
    "reasoning_protocol {name} is not known on the wire {wire} of contract {contract}; {said}.": (
        "约定 {contract} 的接口格式 {wire} 不认识 reasoning_protocol {name}；{said}。",
        "約定 {contract} 的介面格式 {wire} 不認識 reasoning_protocol {name}；{said}。",
    ),
    "contract {contract}: its bases form a loop at {name}.": (
        "约定 {contract}：它的基础在 {name} 处形成循环。",
        "約定 {contract}：它的基礎在 {name} 處形成迴圈。",
    ),
    "contract file {path} cannot be read: {error}.": (
        "无法读取约定文件 {path}：{error}。",
        "無法讀取約定檔案 {path}：{error}。",
    ),
    "The model's server refused the request{said}: {words}.": (
        "模型服务器拒绝了请求{said}：{words}。",
        "模型伺服器拒絕了請求{said}：{words}。",
    ),
    "The model's server {words}{bracket}. Check the endpoint's key and account.": (
        "模型服务器{words}{bracket}。请检查端点的密钥和账户。",
        "模型伺服器{words}{bracket}。請檢查端點的金鑰和帳戶。",
    ),
    "The model's server failed for the moment{said}; nothing of it ran.": (
        "模型服务器暂时出错{said}；没有执行任何内容。",
        "模型伺服器暫時出錯{said}；沒有執行任何內容。",
    ),
    "The reply of the model's server ended before it was complete; nothing of it ran.": (
        "模型服务器的答复没有完整就结束了；没有执行任何内容。",
        "模型伺服器的答覆沒有完整就結束了；沒有執行任何內容。",
    ),
    "The reply of the model's server {what}. Check the endpoint's URL and contract.": (
        "模型服务器的答复不合格式（{what}）。请检查端点的 URL 和约定。",
        "模型伺服器的答覆不合格式（{what}）。請檢查端點的 URL 和約定。",
    ),
    "The model's server closed without a reply.": (
        "模型服务器没有答复就关闭了连接。",
        "模型伺服器沒有答覆就關閉了連線。",
    ),
    "The local model could not be started: {why}.": (
        "无法启动本地模型：{why}。",
        "無法啟動本機模型：{why}。",
    ),
    "No local model is called {name}. Known: {known}.": (
        "没有名为 {name} 的本地模型。已知：{known}。",
        "沒有名為 {name} 的本機模型。已知：{known}。",
    ),
    "The local model is not installed. Install it with: {line}": (
        "本地模型没有安装。安装命令：{line}",
        "本機模型沒有安裝。安裝命令：{line}",
    ),
    "The request ended without a reply; its hosted tools may have run.": (
        "请求没有得到答复就结束了；它的托管工具可能已经执行。",
        "請求沒有得到答覆就結束了；它的託管工具可能已經執行。",
    ),
    (
        "The model's server left out reasoning that it will ask for again later; no call of this reply ran. Go on "
        "to ask again, change model, endpoint or thinking, or declare an empty block in its contract if it takes one."
    ): (
        "模型服务器省略了以后还会要求的推理内容；这次答复中的调用都没有执行。可以继续以再次请求，"
        "更换模型、端点或思考设置，或在服务器接受空块时在它的约定中声明。",
        "模型伺服器省略了以後還會要求的推理內容；這次答覆中的呼叫都沒有執行。可以繼續以再次請求，"
        "更換模型、端點或思考設定，或在伺服器接受空區塊時在它的約定中宣告。",
    ),
    "This model cannot be asked again.": ("无法再次请求这个模型。", "無法再次請求這個模型。"),
    "The model's server refused the replayed history.": (
        "模型服务器拒绝了重放的历史。",
        "模型伺服器拒絕了重放的歷史。",
    ),
}
"""Sentence → 简体, 繁體. A name in braces stands for what differs from case to case."""

FAULT_PARTS: Mapping[str, tuple[str, str]] = {
    " (status {status})": ("（状态码 {status}）", "（狀態碼 {status}）"),
    "refused the key": ("拒绝了密钥", "拒絕了金鑰"),
    "says the quota is spent": ("表示额度已用完", "表示額度已用完"),
    "too many requests; wait and ask again": ("请求过多，请等待后再试", "請求過多，請等待後再試"),
    "the conversation is larger than the model's window; compact it, or start a new session": (
        "对话超出了模型的窗口，请压缩它或开始新的会话",
        "對話超出了模型的視窗，請壓縮它或開始新的工作階段",
    ),
    "the request is too large; leave media or long outputs out": (
        "请求太大，请去掉媒体或较长的输出",
        "請求太大，請去掉媒體或較長的輸出",
    ),
    "its content policy": ("它的内容政策", "它的內容政策"),
    "a field or tool schema is not of its form; check the endpoint's contract": (
        "某个字段或工具格式不符合它的要求，请检查端点的约定",
        "某個欄位或工具格式不符合它的要求，請檢查端點的約定",
    ),
    "its own reply could not be read": ("无法读取它自己的答复", "無法讀取它自己的答覆"),
    "it gave no reason": ("它没有说明原因", "它沒有說明原因"),
    "it gave no reason that says what is wrong": (
        "它给出的原因没有说明错在哪里",
        "它給出的原因沒有說明錯在哪裡",
    ),
    "for a reason that is not about history; check URL, model name and contract": (
        "原因与历史无关，请检查 URL、模型名和约定",
        "原因與歷史無關，請檢查 URL、模型名和約定",
    ),
    "the replayed history ({family})": ("重放的历史（{family}）", "重放的歷史（{family}）"),
    "use one of {known}": ("可用：{known}", "可用：{known}"),
    "leave it out": ("请去掉它", "請去掉它"),
    "leave it out, this server takes none": ("请去掉它，这个服务器不接受", "請去掉它，這個伺服器不接受"),
    "check its permissions": ("请检查权限", "請檢查權限"),
    "it is gone; put it back": ("它不见了，请放回去", "它不見了，請放回去"),
    "could not be reached within connect_seconds = {seconds}": (
        "在 connect_seconds = {seconds} 内无法连接",
        "在 connect_seconds = {seconds} 內無法連線",
    ),
    "refused the connection (is it running?)": ("拒绝了连接（它在运行吗？）", "拒絕了連線（它在執行嗎？）"),
    "has a host name that cannot be found": ("的主机名无法找到", "的主機名無法找到"),
    "could not be trusted: its certificate or TLS failed": (
        "无法信任：证书或 TLS 失败",
        "無法信任：憑證或 TLS 失敗",
    ),
    "could not be connected to": ("无法连接", "無法連線"),
    "could not be reached through the proxy of the environment": (
        "无法通过环境中的代理访问",
        "無法透過環境中的代理連線",
    ),
    "closed the connection before it answered": ("在答复之前关闭了连接", "在答覆之前關閉了連線"),
    "broke off in the middle of its reply": ("在答复中途断开", "在答覆中途斷開"),
    "holds an event that is no object": ("含有不是对象的事件", "含有不是物件的事件"),
    "holds an event that is not JSON": ("含有不是 JSON 的事件", "含有不是 JSON 的事件"),
    "holds no event": ("没有事件", "沒有事件"),
    "holds no message": ("没有消息", "沒有訊息"),
    "holds no output": ("没有输出", "沒有輸出"),
    "is larger than 64 MiB": ("超过 64 MiB", "超過 64 MiB"),
    "is no JSON object": ("不是 JSON 对象", "不是 JSON 物件"),
    "is not JSON": ("不是 JSON", "不是 JSON"),
    "is not UTF-8": ("不是 UTF-8", "不是 UTF-8"),
    "it was not ready within {seconds} s": ("它在 {seconds} 秒内没有就绪", "它在 {seconds} 秒內沒有就緒"),
    "its process ended with code {code}": ("它的进程以退出码 {code} 结束", "它的行程以退出碼 {code} 結束"),
}
"""Parts of such sentences."""
