"""What a person gave that cannot be used, in the two Chinese languages, by its English text, as data. Pure.

Owns: one row per such sentence with an `SF-` code (settings, flags, references, what needs a terminal), the
parser's own among them, and the parts they are put together from. Does not own: what went wrong below
(`words_faults`), how a row is found (`phrases`). English is what the code that raises it says itself.
"""

from __future__ import annotations

from collections.abc import Mapping

MISTAKES: Mapping[str, tuple[str, str]] = {
    "--debug knows no topic {topic}. Topics: {topics}.": (
        "--debug 没有主题 {topic}。主题：{topics}。",
        "--debug 沒有主題 {topic}。主題：{topics}。",
    ),
    "--debug-file {file} cannot be written: {why}.": (
        "--debug-file {file} 无法写入：{why}。",
        "--debug-file {file} 無法寫入：{why}。",
    ),
    "{ref} fits more than one session.": ("{ref} 对应多个会话。", "{ref} 對應多個工作階段。"),
    "{ref} names no session of this project.": (
        "{ref} 不是这个项目的会话。",
        "{ref} 不是這個專案的工作階段。",
    ),
    "The words of session {session} were dropped; what is left of its calls can still be listed.": (
        "会话 {session} 的内容已清除，它的调用留下的记录仍可列出。",
        "工作階段 {session} 的內容已清除，它的呼叫留下的記錄仍可列出。",
    ),
    (
        "Session {session} is open in process {pid} on {host}{since}; if that process dies it is "
        "known {when}. Read it with surefoot session show, fork it with surefoot session fork, wait with "
        "--wait SECONDS, or take it over with --take-over."
    ): (
        (
            "会话 {session} 正由 {host} 上的进程 {pid} 打开{since}；如果那个进程终止，{when}就能得知。"
            "可以用 surefoot session show 查看，用 surefoot session fork 复制，用 --wait SECONDS 等待，"
            "或用 --take-over 接管。"
        ),
        (
            "工作階段 {session} 正由 {host} 上的行程 {pid} 開啟{since}；如果那個行程終止，"
            "{when}就能得知。可以用 surefoot session show 查看，用 surefoot session fork 複製，"
            "用 --wait SECONDS 等待，或用 --take-over 接管。"
        ),
    ),
    "Session {session} is {status}.": (
        "会话 {session} 的状态是 {status}。",
        "工作階段 {session} 的狀態是 {status}。",
    ),
    "Only a person may take a session over ({reason}).": (
        "只有人可以接管会话（{reason}）。",
        "只有人可以接管工作階段（{reason}）。",
    ),
    "Endpoint {name} asks for wire {wire}; known: {known}.": (
        "端点 {name} 要求的接口格式是 {wire}，已知的有：{known}。",
        "端點 {name} 要求的介面格式是 {wire}，已知的有：{known}。",
    ),
    "There is no session to continue in this project yet.": (
        "这个项目还没有可以继续的会话。",
        "這個專案還沒有可以繼續的工作階段。",
    ),
    "hosted_tools of endpoint {name}: {error}.": (
        "端点 {name} 的 hosted_tools：{error}。",
        "端點 {name} 的 hosted_tools：{error}。",
    ),
    (
        "No model is configured. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or DEEPSEEK_API_KEY, add an "
        "endpoint to {file}, or use the built-in small model with -m local."
    ): (
        (
            "没有配置模型。请设置 OPENAI_API_KEY、ANTHROPIC_API_KEY 或 DEEPSEEK_API_KEY，在 {file} "
            "中添加端点，或用 -m local 使用内置的小模型。"
        ),
        (
            "沒有配置模型。請設定 OPENAI_API_KEY、ANTHROPIC_API_KEY 或 DEEPSEEK_API_KEY，在 {file} "
            "中新增端點，或用 -m local 使用內建的小模型。"
        ),
    ),
    "{where}: {path} is not a setting of surefoot.": (
        "{where}：{path} 不是 surefoot 的设置项。",
        "{where}：{path} 不是 surefoot 的設定項。",
    ),
    "{where}: {path} must be {problem}.": (
        "{where}：{path} 必须是{problem}。",
        "{where}：{path} 必須是{problem}。",
    ),
    "No key for endpoint {name}: set the variable {variable}.": (
        "端点 {name} 没有密钥，请设置变量 {variable}。",
        "端點 {name} 沒有金鑰，請設定變數 {variable}。",
    ),
    (
        "The key command {shown} of endpoint {name} gave no key (exit code {code}). Run it by hand "
        "and correct key_command."
    ): (
        ("端点 {name} 的密钥命令 {shown} 没有给出密钥（退出码 {code}）。请手动运行它并改正 key_command。"),
        ("端點 {name} 的金鑰命令 {shown} 沒有給出金鑰（退出碼 {code}）。請手動執行它並改正 key_command。"),
    ),
    (
        "There is no key for {name}: the variable {variable} is not set, and no [endpoints.{again}] "
        "stands in {file}."
    ): (
        "{name} 没有密钥：变量 {variable} 没有设置，{file} 中也没有 [endpoints.{again}]。",
        "{name} 沒有金鑰：變數 {variable} 沒有設定，{file} 中也沒有 [endpoints.{again}]。",
    ),
    (
        "No endpoint is named {name} (known: {known}). Add [endpoints.{again}] to {file}, or name "
        "another with -m ENDPOINT/MODEL."
    ): (
        (
            "没有名为 {name} 的端点（已知：{known}）。请在 {file} 中添加 [endpoints.{again}]，或用 -m "
            "ENDPOINT/MODEL 指定另一个。"
        ),
        (
            "沒有名為 {name} 的端點（已知：{known}）。請在 {file} 中新增 [endpoints.{again}]，或用 -m "
            "ENDPOINT/MODEL 指定另一個。"
        ),
    ),
    "Endpoint {name} has no model. Name one with -m {again}/MODEL.": (
        "端点 {name} 没有模型。请用 -m {again}/MODEL 指定。",
        "端點 {name} 沒有模型。請用 -m {again}/MODEL 指定。",
    ),
    "{where}: {path} must be a table, written as [{again}].": (
        "{where}：{path} 必须是表，写作 [{again}]。",
        "{where}：{path} 必須是表，寫作 [{again}]。",
    ),
    "{where}: {path}.{key} needs {again}.class beside it.": (
        "{where}：{path}.{key} 旁边需要 {again}.class。",
        "{where}：{path}.{key} 旁邊需要 {again}.class。",
    ),
    (
        "{where}: {path}.class needs {again}.reason beside it, which listings show. Write why, as in "
        'reason = "the server drops repeats".'
    ): (
        (
            '{where}：{path}.class 旁边需要 {again}.reason，列表会显示它。请写明原因，例如 reason = "the '
            'server drops repeats"。'
        ),
        (
            '{where}：{path}.class 旁邊需要 {again}.reason，列表會顯示它。請寫明原因，例如 reason = "the '
            'server drops repeats"。'
        ),
    ),
    (
        "The key command {shown} of endpoint {name} did not answer ({reason}). Run it by hand and "
        "correct key_command."
    ): (
        "端点 {name} 的密钥命令 {shown} 没有回应（{reason}）。请手动运行它并改正 key_command。",
        "端點 {name} 的金鑰命令 {shown} 沒有回應（{reason}）。請手動執行它並改正 key_command。",
    ),
    (
        "limits.lease_renewal_seconds ({renewal}) must be at most half of limits.lease_seconds "
        "({lease}), so that one lost renewal costs no session"
    ): (
        (
            "limits.lease_renewal_seconds（{renewal}）最多只能是 limits.lease_seconds（{lease}）的一半，"
            "这样丢失一次续约不会失去会话"
        ),
        (
            "limits.lease_renewal_seconds（{renewal}）最多只能是 limits.lease_seconds（{lease}）的一半，"
            "這樣遺失一次續約不會失去工作階段"
        ),
    ),
    "limits.snapshot_resolved must not be above limits.snapshot_calls; lower it": (
        "limits.snapshot_resolved 不能大于 limits.snapshot_calls，请调低",
        "limits.snapshot_resolved 不能大於 limits.snapshot_calls，請調低",
    ),
    "limits.{name} is no bound; see `surefoot config show` for their names": (
        "limits.{name} 不是界限；名称请看 `surefoot config show`",
        "limits.{name} 不是界限；名稱請看 `surefoot config show`",
    ),
    "permission rule {text} is not text; write it as 'Tool' or 'Tool(pattern)'": (
        "权限规则 {text} 不是文本，请写成 'Tool' 或 'Tool(pattern)'",
        "權限規則 {text} 不是文字，請寫成 'Tool' 或 'Tool(pattern)'",
    ),
    "permission rule {text} cannot be read; write it as 'Tool' or 'Tool(pattern)'": (
        "无法读懂权限规则 {text}，请写成 'Tool' 或 'Tool(pattern)'",
        "無法讀懂權限規則 {text}，請寫成 'Tool' 或 'Tool(pattern)'",
    ),
    "permission rule {text} has an empty pattern; write {name} for every call of it": (
        "权限规则 {text} 的模式是空的；要指它的每次调用，请写 {name}",
        "權限規則 {text} 的模式是空的；要指它的每次呼叫，請寫 {name}",
    ),
    "permission rule {text}: an MCP tool takes no pattern; write {name}": (
        "权限规则 {text}：MCP 工具不带模式，请写 {name}",
        "權限規則 {text}：MCP 工具不帶模式，請寫 {name}",
    ),
    "{text} is no permission mode; use one of {known}, manual": (
        "{text} 不是权限模式；可用：{known}、manual",
        "{text} 不是權限模式；可用：{known}、manual",
    ),
    "{file} cannot be read: {reason}. Give yourself the right to read it, or move it away.": (
        "无法读取 {file}：{reason}。请给自己读取的权限，或把它移走。",
        "無法讀取 {file}：{reason}。請給自己讀取的權限，或把它移走。",
    ),
    "{file} is not UTF-8 text. Save it as UTF-8.": (
        "{file} 不是 UTF-8 文本。请存为 UTF-8。",
        "{file} 不是 UTF-8 文字。請存為 UTF-8。",
    ),
    "{file}:{line} is not valid TOML: {error}. Correct this line.": (
        "{file}:{line} 不是有效的 TOML：{error}。请改正这一行。",
        "{file}:{line} 不是有效的 TOML：{error}。請改正這一行。",
    ),
    "{name} is not set here.": ("{name} 在这里没有设置。", "{name} 在這裡沒有設定。"),
    "{name} is no setting.": ("{name} 不是设置项。", "{name} 不是設定項。"),
    "{name} is no setting. Did you mean {near}?": (
        "{name} 不是设置项。是否想写 {near}？",
        "{name} 不是設定項。是否想寫 {near}？",
    ),
    "There is no setting {name}.": ("没有设置项 {name}。", "沒有設定項 {name}。"),
    "There is no setting {name}. Did you mean {near}?": (
        "没有设置项 {name}。是否想写 {near}？",
        "沒有設定項 {name}。是否想寫 {near}？",
    ),
    "{name} = {value}: expected {wrong}.": (
        "{name} = {value}：应是{wrong}。",
        "{name} = {value}：應是{wrong}。",
    ),
    "--recovery, --output and --export name different schemas; ask for one.": (
        "--recovery、--output 和 --export 指的是不同的格式，请只选一个。",
        "--recovery、--output 和 --export 指的是不同的格式，請只選一個。",
    ),
    "{word} is no command. As a prompt: {prompt}": (
        "{word} 不是命令。作为提示词：{prompt}",
        "{word} 不是命令。作為提示詞：{prompt}",
    ),
    "{word} is no command. Did you mean {near}? As a prompt: {prompt}": (
        "{word} 不是命令。是否想写 {near}？作为提示词：{prompt}",
        "{word} 不是命令。是否想寫 {near}？作為提示詞：{prompt}",
    ),
    "--json and --format md are two forms; choose one.": (
        "--json 和 --format md 是两种格式，请选一个。",
        "--json 和 --format md 是兩種格式，請選一個。",
    ),
    "--no-redact is decided by a person at a terminal; without it secrets are taken out.": (
        "--no-redact 由终端前的人决定；没有它时会去掉机密。",
        "--no-redact 由終端機前的人決定；沒有它時會去掉機密。",
    ),
    "{file} exists already; name another file.": (
        "{file} 已存在，请换一个文件名。",
        "{file} 已存在，請換一個檔名。",
    ),
    "{file} cannot be written: {reason}.": ("无法写入 {file}：{reason}。", "無法寫入 {file}：{reason}。"),
    "There is no completion for {shell}.": ("没有 {shell} 的补全脚本。", "沒有 {shell} 的補全指令碼。"),
    "No tool is called {name}.": ("没有名为 {name} 的工具。", "沒有名為 {name} 的工具。"),
    "No tool is called {name}. Did you mean {near}?": (
        "没有名为 {name} 的工具。是否想写 {near}？",
        "沒有名為 {name} 的工具。是否想寫 {near}？",
    ),
    "The ledger of this project can be read; there is nothing to set aside.": (
        "这个项目的账本可以读取，没有需要移开的。",
        "這個專案的帳本可以讀取，沒有需要移開的。",
    ),
    "Only a person may set a ledger aside ({reason}).": (
        "只有人可以移开账本（{reason}）。",
        "只有人可以移開帳本（{reason}）。",
    ),
    "ledger begin is decided by a person at a terminal.": (
        "ledger begin 由终端前的人决定。",
        "ledger begin 由終端機前的人決定。",
    ),
    "Nothing was changed.": ("没有任何改动。", "沒有任何改動。"),
    "--older-than {text} is no age. Write 12h, 30d or 8w.": (
        "--older-than {text} 不是时长。请写 12h、30d 或 8w。",
        "--older-than {text} 不是時長。請寫 12h、30d 或 8w。",
    ),
    "Only a person may drop what the ledger holds ({reason}).": (
        "只有人可以清除账本中的内容（{reason}）。",
        "只有人可以清除帳本中的內容（{reason}）。",
    ),
    "{sessions} sessions would be dropped, and nobody can be asked here. Add --yes.": (
        "将清除 {sessions} 个会话，而这里没有人可以询问。请加上 --yes。",
        "將清除 {sessions} 個工作階段，而這裡沒有人可以詢問。請加上 --yes。",
    ),
    "{ref} is not unique: {names}. Give more of it.": (
        "{ref} 不唯一：{names}。请写得更完整。",
        "{ref} 不唯一：{names}。請寫得更完整。",
    ),
    "Nothing here is called {ref}.": ("这里没有名为 {ref} 的东西。", "這裡沒有名為 {ref} 的東西。"),
    "There is no session in this project yet.": ("这个项目还没有会话。", "這個專案還沒有工作階段。"),
    "{told} Did you mean surefoot recover {near}?": (
        "{told} 是否想写 surefoot recover {near}？",
        "{told} 是否想寫 surefoot recover {near}？",
    ),
    "--json stands behind the verb.": ("--json 要写在动词之后。", "--json 要寫在動詞之後。"),
    "{ref} is settled; it never was in doubt.": ("{ref} 已有定论，从未存疑。", "{ref} 已有定論，從未存疑。"),
    "Name a call, or use --all.": ("请指明一次调用，或使用 --all。", "請指明一次呼叫，或使用 --all。"),
    "Give the guidance as words or with --guidance, not both.": (
        "说明请直接写出或用 --guidance 给出，不要两者都用。",
        "說明請直接寫出或用 --guidance 給出，不要兩者都用。",
    ),
    "A name has 1 to {count} characters.": ("名称有 1 到 {count} 个字符。", "名稱有 1 到 {count} 個字元。"),
    "Another session is called {name}.": ("另一个会话已叫 {name}。", "另一個工作階段已叫 {name}。"),
    "Session {session} is {status}; there is nothing to drop.": (
        "会话 {session} 的状态是 {status}，没有可清除的内容。",
        "工作階段 {session} 的狀態是 {status}，沒有可清除的內容。",
    ),
    "Nobody can be asked here. Add --yes.": (
        "这里没有人可以询问。请加上 --yes。",
        "這裡沒有人可以詢問。請加上 --yes。",
    ),
    "A session with undecided calls is removed by a person at a terminal.": (
        "有未决调用的会话由终端前的人删除。",
        "有未決呼叫的工作階段由終端機前的人刪除。",
    ),
    "There is no session to copy in this project yet.": (
        "这个项目还没有可以复制的会话。",
        "這個專案還沒有可以複製的工作階段。",
    ),
    "--take-over is decided by a person at a terminal.": (
        "--take-over 由终端前的人决定。",
        "--take-over 由終端機前的人決定。",
    ),
    "This command asks no model.": ("这个命令不请求模型。", "這個命令不請求模型。"),
    "A chat needs a terminal. For one prompt without questions use -p.": (
        "对话需要终端。只运行一条提示词且不提问时请用 -p。",
        "對話需要終端機。只執行一條提示詞且不提問時請用 -p。",
    ),
    "--fork-session copies a session: say which with -r REF, or -c for the newest.": (
        "--fork-session 复制一个会话：请用 -r REF 指明，或用 -c 表示最新的。",
        "--fork-session 複製一個工作階段：請用 -r REF 指明，或用 -c 表示最新的。",
    ),
    "{flag} {text} is no duration. Write 90s, 10m or 2h.": (
        "{flag} {text} 不是时长。请写 90s、10m 或 2h。",
        "{flag} {text} 不是時長。請寫 90s、10m 或 2h。",
    ),
    "Give {flag} or {again}-file, not both.": (
        "{flag} 和 {again}-file 只能给一个。",
        "{flag} 和 {again}-file 只能給一個。",
    ),
    "{flag} {name} is no file.": ("{flag} {name} 不是文件。", "{flag} {name} 不是檔案。"),
    "{flag} {name} cannot be read as UTF-8 text.": (
        "{flag} {name} 无法作为 UTF-8 文本读取。",
        "{flag} {name} 無法作為 UTF-8 文字讀取。",
    ),
    "--session-id {text} must be a UUID, or ses_ and 26 letters and digits as surefoot writes ids.": (
        "--session-id {text} 必须是 UUID，或 surefoot 写法的 ses_ 加 26 个字母和数字。",
        "--session-id {text} 必須是 UUID，或 surefoot 寫法的 ses_ 加 26 個字母和數字。",
    ),
    "--session-id names a new session; with -c or -r there is one already.": (
        "--session-id 为新会话指定编号；用 -c 或 -r 时会话已经存在。",
        "--session-id 為新工作階段指定編號；用 -c 或 -r 時工作階段已經存在。",
    ),
    "Session {session} is there already; go on with it, or give another id.": (
        "会话 {session} 已经存在；请继续它，或换一个编号。",
        "工作階段 {session} 已經存在；請繼續它，或換一個編號。",
    ),
    "--no-session-persistence keeps no session: it goes without -c, -r and -n.": (
        "--no-session-persistence 不保留会话，不能与 -c、-r 或 -n 同用。",
        "--no-session-persistence 不保留工作階段，不能與 -c、-r 或 -n 同用。",
    ),
    "{flag} belongs to a run without questions: add -p.": (
        "{flag} 用于不提问的运行：请加上 -p。",
        "{flag} 用於不提問的執行：請加上 -p。",
    ),
    "--input-format stream-json needs --output-format stream-json: each message has its answer.": (
        "--input-format stream-json 需要 --output-format stream-json：每条消息都有各自的回答。",
        "--input-format stream-json 需要 --output-format stream-json：每則訊息都有各自的回答。",
    ),
    "--add-dir {folder} is no folder.": (
        "--add-dir {folder} 不是文件夹。",
        "--add-dir {folder} 不是資料夾。",
    ),
    "--json-schema is no valid JSON schema at {place}.": (
        "--json-schema 在 {place} 处不是有效的 JSON Schema。",
        "--json-schema 在 {place} 處不是有效的 JSON Schema。",
    ),
    "--json-schema points to {place}; references may only lead into the schema itself.": (
        "--json-schema 指向 {place}；引用只能指向该模式自身之内。",
        "--json-schema 指向 {place}；參照只能指向該綱要自身之內。",
    ),
    "Line {number} of standard input holds more than 8 MiB.": (
        "标准输入第 {number} 行超过 8 MiB。",
        "標準輸入第 {number} 行超過 8 MiB。",
    ),
    "Line {number} of standard input is not valid JSON.": (
        "标准输入第 {number} 行不是有效的 JSON。",
        "標準輸入第 {number} 行不是有效的 JSON。",
    ),
    "Line {number} of standard input must be a JSON object.": (
        "标准输入第 {number} 行必须是 JSON 对象。",
        "標準輸入第 {number} 行必須是 JSON 物件。",
    ),
    "Line {number} of standard input has no words: message.content must be a text or a list of text blocks.": (
        "标准输入第 {number} 行没有文字：message.content 必须是文本或文本块的列表。",
        "標準輸入第 {number} 行沒有文字：message.content 必須是文字或文字區塊的清單。",
    ),
    "The final answer does not fit the JSON schema: {faults}.": (
        "最终回答不符合 JSON Schema：{faults}。",
        "最終回答不符合 JSON Schema：{faults}。",
    ),
    "--output-last-message {file} is no place for a file.": (
        "--output-last-message {file} 不能放文件。",
        "--output-last-message {file} 不能放檔案。",
    ),
    "{where} is not valid JSON: {error}.": (
        "{where} 不是有效的 JSON：{error}。",
        "{where} 不是有效的 JSON：{error}。",
    ),
    "{where} must be a JSON object.": ("{where} 必须是 JSON 对象。", "{where} 必須是 JSON 物件。"),
    "--max-turns {text} must be a whole number from 1.": (
        "--max-turns {text} 必须是从 1 起的整数。",
        "--max-turns {text} 必須是從 1 起的整數。",
    ),
    "{file} writes {table} in a form that config set cannot change; write {name} by hand.": (
        "{file} 写 {table} 的形式是 config set 无法修改的；请手动写入 {name}。",
        "{file} 寫 {table} 的形式是 config set 無法修改的；請手動寫入 {name}。",
    ),
    "{file} leads out of the project, which is not trusted, and is not read; surefoot trust takes it in.": (
        "{file} 指向项目之外，而项目未受信任，因此没有读取；surefoot trust 会把它纳入。",
        "{file} 指向專案之外，而專案未受信任，因此沒有讀取；surefoot trust 會把它納入。",
    ),
    "The instruction files hold more than 64 KiB; what comes after that is not told to the model.": (
        "指令文件超过 64 KiB；其后的内容没有告诉模型。",
        "指令檔案超過 64 KiB；其後的內容沒有告訴模型。",
    ),
    "Standard input holds more than 8 MiB. Put it in a file and name the file.": (
        "标准输入超过 8 MiB。请放进文件并写出文件名。",
        "標準輸入超過 8 MiB。請放進檔案並寫出檔名。",
    ),
    "There is no prompt: give one as an argument or on standard input.": (
        "没有提示词：请作为参数或从标准输入给出。",
        "沒有提示詞：請作為參數或從標準輸入給出。",
    ),
    "{flag} {value} must be {problem}.": (
        "{flag} {value} 必须是{problem}。",
        "{flag} {value} 必須是{problem}。",
    ),
    "Choose one of --text, --svg and --json.": (
        "请在 --text、--svg 和 --json 中选一个。",
        "請在 --text、--svg 和 --json 中選一個。",
    ),
    "No pack is called {name} (shipped: {known}). Correct `packs.use`.": (
        "没有名为 {name} 的规则包（自带：{known}）。请改正 `packs.use`。",
        "沒有名為 {name} 的規則包（自帶：{known}）。請改正 `packs.use`。",
    ),
    "The pack {where} is larger than {count} bytes.": (
        "规则包 {where} 超过 {count} 字节。",
        "規則包 {where} 超過 {count} 位元組。",
    ),
    "The pack {where} is left out: {key} {problem}.": (
        "规则包 {where} 未采用：{key} {problem}。",
        "規則包 {where} 未採用：{key} {problem}。",
    ),
    "The pack {file} cannot be read ({reason}).": (
        "无法读取规则包 {file}（{reason}）。",
        "無法讀取規則包 {file}（{reason}）。",
    ),
    "The pack {where} is no TOML: {error}.": (
        "规则包 {where} 不是 TOML：{error}。",
        "規則包 {where} 不是 TOML：{error}。",
    ),
    "Looking into PostgreSQL needs the extra `postgres`. Install it with: {line}": (
        "查看 PostgreSQL 需要附加组件 `postgres`。安装命令：{line}",
        "查看 PostgreSQL 需要附加元件 `postgres`。安裝命令：{line}",
    ),
    "The working directory is gone.": ("工作目录已不存在。", "工作目錄已不存在。"),
    "The system did not allow it: {reason}.": ("系统不允许：{reason}。", "系統不允許：{reason}。"),
    "The system did not allow it: {reason} ({file}).": (
        "系统不允许：{reason}（{file}）。",
        "系統不允許：{reason}（{file}）。",
    ),
    "A fault of surefoot: {kind}: {error}": (
        "surefoot 自身的错误：{kind}：{error}",
        "surefoot 自身的錯誤：{kind}：{error}",
    ),
}
"""Sentence → 简体, 繁體. A name in braces stands for what differs from case to case."""

PARSER: Mapping[str, tuple[str, str]] = {
    "No such option: {name}": ("没有这个选项：{name}", "沒有這個選項：{name}"),
    "No such option {name}.": ("没有选项 {name}。", "沒有選項 {name}。"),
    "No such option {name}. Did you mean {near}?": (
        "没有选项 {name}。是否想写 {near}？",
        "沒有選項 {name}。是否想寫 {near}？",
    ),
    "No such option {name}. (Possible options: {near})": (
        "没有选项 {name}。（可能的选项：{near}）",
        "沒有選項 {name}。（可能的選項：{near}）",
    ),
    "No such command {name}.": ("没有命令 {name}。", "沒有命令 {name}。"),
    "No such command {name}. Did you mean {near}?": (
        "没有命令 {name}。是否想写 {near}？",
        "沒有命令 {name}。是否想寫 {near}？",
    ),
    "No such command {name}. (Did you mean one of: {near}?)": (
        "没有命令 {name}。（是否想写：{near}？）",
        "沒有命令 {name}。（是否想寫：{near}？）",
    ),
    "Missing command.": ("缺少命令。", "缺少命令。"),
    "Missing argument {name}.": ("缺少参数 {name}。", "缺少參數 {name}。"),
    "Missing argument {name}. {more}": ("缺少参数 {name}。{more}", "缺少參數 {name}。{more}"),
    "Missing option {name}.": ("缺少选项 {name}。", "缺少選項 {name}。"),
    "Missing option {name}. {more}": ("缺少选项 {name}。{more}", "缺少選項 {name}。{more}"),
    "Option {name} requires an argument.": ("选项 {name} 需要一个参数。", "選項 {name} 需要一個參數。"),
    "Option {name} requires {count} arguments.": (
        "选项 {name} 需要 {count} 个参数。",
        "選項 {name} 需要 {count} 個參數。",
    ),
    "Option {name} does not take a value.": ("选项 {name} 不带值。", "選項 {name} 不帶值。"),
    "Argument {name} takes {count} values.": (
        "参数 {name} 需要 {count} 个值。",
        "參數 {name} 需要 {count} 個值。",
    ),
    "Got unexpected extra argument ({words})": ("多余的参数（{words}）", "多餘的參數（{words}）"),
    "Got unexpected extra arguments ({words})": ("多余的参数（{words}）", "多餘的參數（{words}）"),
    "Invalid value for {name}: {why}": ("{name} 的值无效：{why}", "{name} 的值無效：{why}"),
    "Invalid value: {why}": ("值无效：{why}", "值無效：{why}"),
    "{value} is not one of {known}.": ("{value} 不在 {known} 之中。", "{value} 不在 {known} 之中。"),
    "{value} is not a valid integer.": ("{value} 不是有效的整数。", "{value} 不是有效的整數。"),
    "{value} is not a valid float.": ("{value} 不是有效的数字。", "{value} 不是有效的數字。"),
    "{value} is not in the range {range}.": (
        "{value} 不在范围 {range} 内。",
        "{value} 不在範圍 {range} 內。",
    ),
    "Directory {path} does not exist.": ("目录 {path} 不存在。", "目錄 {path} 不存在。"),
    "File {path} does not exist.": ("文件 {path} 不存在。", "檔案 {path} 不存在。"),
    "Path {path} does not exist.": ("路径 {path} 不存在。", "路徑 {path} 不存在。"),
    "Directory {path} is a file.": ("{path} 是文件，不是目录。", "{path} 是檔案，不是目錄。"),
    "Choose from: {known}": ("可选：{known}", "可選：{known}"),
}
"""What the command line's parser says."""

MISTAKE_PARTS: Mapping[str, tuple[str, str]] = {
    "at once": ("立刻", "立刻"),
    "when its lease ends, at most 10 minutes from now": (
        "在它的租约到期时（最多 10 分钟后）",
        "在它的租約到期時（最多 10 分鐘後）",
    ),
    " for {minutes} min": ("已有 {minutes} 分钟", "已有 {minutes} 分鐘"),
    " for {seconds} s": ("已有 {seconds} 秒", "已有 {seconds} 秒"),
    "one of {known}": ("以下之一：{known}", "以下之一：{known}"),
    "text in quotation marks": ("引号中的文本", "引號中的文字"),
    "true or false": ("true 或 false", "true 或 false"),
    "a whole number above 0": ("大于 0 的整数", "大於 0 的整數"),
    "a number above 0": ("大于 0 的数", "大於 0 的數"),
    "a list of whole numbers above 0": ("大于 0 的整数列表", "大於 0 的整數列表"),
    "a list of texts": ("文本列表", "文字列表"),
    "a table of texts": ("文本表", "文字表"),
    "a whole number from {least} to {most}; this bound can be moved and not lifted": (
        " {least} 到 {most} 的整数；这个界限可以移动，不能取消",
        " {least} 到 {most} 的整數；這個界限可以移動，不能取消",
    ),
    "a number from {least} to {most}; this bound can be moved and not lifted": (
        " {least} 到 {most} 的数；这个界限可以移动，不能取消",
        " {least} 到 {most} 的數；這個界限可以移動，不能取消",
    ),
    "none": ("无", "無"),
}
"""Parts of such sentences."""
