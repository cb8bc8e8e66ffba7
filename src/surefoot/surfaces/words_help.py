"""The help of commands and flags in the two Chinese languages, by its English text, as data. Pure.

Owns: one row per text that `--help` shows. Does not own: the commands, their English help, the layout.
Loaded only where help is shown in another language than English.
"""

from __future__ import annotations

from collections.abc import Mapping

HELP: Mapping[str, tuple[str, str]] = {
    "An agent whose tool calls tell the truth. Without -p: a chat in this directory.": (
        "工具调用如实可查的智能体。不带 -p：在当前目录对话。",
        "工具呼叫如實可查的智慧體。不帶 -p：在目前目錄對話。",
    ),
    "One prompt to the end, no questions.": (
        "运行一条提示词到结束，不提问。",
        "執行一條提示詞到結束，不提問。",
    ),
    "What is printed.": ("输出的格式。", "輸出的格式。"),
    "stream-json: messages on standard input, one JSON line each, each a turn.": (
        "stream-json：从标准输入读消息，每行一个 JSON，每条一轮。",
        "stream-json：從標準輸入讀訊息，每行一個 JSON，每則一輪。",
    ),
    "The final answer must be JSON that fits this schema.": (
        "最终回答必须是符合此模式的 JSON。",
        "最終回答必須是符合此綱要的 JSON。",
    ),
    "The id of a new session; a UUID will do.": (
        "新会话的编号；可以是 UUID。",
        "新工作階段的編號；可以是 UUID。",
    ),
    "With -p: keep nothing of the run on disk; only tools that read are offered.": (
        "与 -p 一起用：不在磁盘上保留任何内容；只提供读取的工具。",
        "與 -p 一起用：不在磁碟上保留任何內容；只提供讀取的工具。",
    ),
    "Work in this folder too; may stand several times.": (
        "也在这个文件夹中工作；可多次给出。",
        "也在這個資料夾中工作；可多次給出。",
    ),
    "Go on with the newest session here.": ("继续这里最新的会话。", "繼續這裡最新的工作階段。"),
    "Go on with this session.": ("继续这个会话。", "繼續這個工作階段。"),
    "With -c or -r: go on in a copy; the session itself stays as it is.": (
        "与 -c 或 -r 一起用：在副本中继续，原会话保持不变。",
        "與 -c 或 -r 一起用：在副本中繼續，原工作階段保持不變。",
    ),
    "Name of a new session.": ("新会话的名称。", "新工作階段的名稱。"),
    "Wait while another process holds the session.": (
        "会话被另一个进程占用时等待。",
        "工作階段被另一個行程佔用時等待。",
    ),
    "Take a held session over; asks at a terminal.": (
        "接管被占用的会话；在终端询问。",
        "接管被佔用的工作階段；在終端機詢問。",
    ),
    "The model to use.": ("使用的模型。", "使用的模型。"),
    "How much the model reasons: none, low, high …": (
        "模型推理的程度：none、low、high …",
        "模型推理的程度：none、low、high …",
    ),
    "default, acceptEdits, plan, dontAsk or bypassPermissions.": (
        "default、acceptEdits、plan、dontAsk 或 bypassPermissions。",
        "default、acceptEdits、plan、dontAsk 或 bypassPermissions。",
    ),
    "Allow these without a question: Write, 'Bash(git status)'.": (
        "不提问即允许：Write, 'Bash(git status)'。",
        "不提問即允許：Write, 'Bash(git status)'。",
    ),
    "Never allow these; stands before every other rule.": (
        "从不允许这些；优先于其他所有规则。",
        "從不允許這些；優先於其他所有規則。",
    ),
    "Offer only these tools.": ("只提供这些工具。", "只提供這些工具。"),
    "Allow everything that no deny rule names.": (
        "允许没有被拒绝规则点名的一切。",
        "允許沒有被拒絕規則點名的一切。",
    ),
    "session, reach, action, advise or off.": (
        "session、reach、action、advise 或 off。",
        "session、reach、action、advise 或 off。",
    ),
    "What an unattended run does with open calls.": (
        "无人值守的运行如何处理未决调用。",
        "無人值守的執行如何處理未決呼叫。",
    ),
    "With stream-json: the pieces of a reply as they come.": (
        "用于 stream-json：回复逐段到达时就输出。",
        "用於 stream-json：回覆逐段到達時就輸出。",
    ),
    "Write the final answer to a file as well.": ("把最终回答也写入文件。", "把最終回答也寫入檔案。"),
    "Settings for this run; other flags stand above them.": (
        "只用于这次运行的设置；其他选项优先。",
        "只用於這次執行的設定；其他選項優先。",
    ),
    "Words in the place of the system text.": ("替换系统提示的文字。", "取代系統提示的文字。"),
    "Words behind the system text.": ("接在系统提示后面的文字。", "接在系統提示後面的文字。"),
    "The same, from a file.": ("同上，取自文件。", "同上，取自檔案。"),
    "Most model requests of this run; at least 1.": (
        "这次运行最多的模型请求数，至少为 1。",
        "這次執行最多的模型請求數，至少為 1。",
    ),
    "End the run after 90s, 10m or 2h.": ("在 90s、10m 或 2h 后结束运行。", "在 90s、10m 或 2h 後結束執行。"),
    "Work in this directory.": ("在这个目录中工作。", "在這個目錄中工作。"),
    "Whether colour is written; NO_COLOR counts for auto.": (
        "是否输出颜色；auto 时遵从 NO_COLOR。",
        "是否輸出顏色；auto 時遵從 NO_COLOR。",
    ),
    "No boxes drawn over, no colour, no redraw.": (
        "不画框、不用颜色、不重绘。",
        "不畫框、不用顏色、不重繪。",
    ),
    "Draw for a screen reader: a labelled line per fact, numbered choices, no redraw.": (
        "供屏幕阅读器使用：每个事实一行并带标签，选项带编号，不重绘。",
        "供螢幕閱讀器使用：每個事實一行並帶標籤，選項帶編號，不重繪。",
    ),
    "The version.": ("版本。", "版本。"),
    "A diagnostic log on standard error: settings, session, model, tools, recovery, hooks.": (
        "在标准错误上输出诊断日志：settings、session、model、tools、recovery、hooks。",
        "在標準錯誤上輸出診斷日誌：settings、session、model、tools、recovery、hooks。",
    ),
    "The diagnostic log, at the end of a file.": ("把诊断日志写到文件末尾。", "把診斷日誌寫到檔案末尾。"),
    "Name each change of a receipt on standard error.": (
        "在标准错误上列出收据的每次变化。",
        "在標準錯誤上列出收據的每次變化。",
    ),
    "One prompt to the end, no questions (also: exec, surefoot -p).": (
        "运行一条提示词到结束，不提问（也可用 exec、surefoot -p）。",
        "執行一條提示詞到結束，不提問（也可用 exec、surefoot -p）。",
    ),
    "One prompt to the end, no questions; the same as surefoot -p.": (
        "运行一条提示词到结束，不提问；与 surefoot -p 相同。",
        "執行一條提示詞到結束，不提問；與 surefoot -p 相同。",
    ),
    "Calls that may have happened: list, look, decide.": (
        "可能已发生的调用：列出、查看、决定。",
        "可能已發生的呼叫：列出、查看、決定。",
    ),
    "Calls that may have happened: list, look, decide. With a reference: its card.": (
        "可能已发生的调用：列出、查看、决定。带上引用：显示它的卡片。",
        "可能已發生的呼叫：列出、查看、決定。帶上引用：顯示它的卡片。",
    ),
    "Without a verb: what is open, as JSON.": (
        "不带动词：以 JSON 给出未决调用。",
        "不帶動詞：以 JSON 給出未決呼叫。",
    ),
    "Recover from valid history after a provider refused it: one request, once. [ID] [GUIDANCE…]": (
        "服务商拒绝历史之后，从有效的历史恢复：一个请求，只一次。[ID] [GUIDANCE…]",
        "服務商拒絕歷史之後，從有效的歷史恢復：一個請求，只一次。[ID] [GUIDANCE…]",
    ),
    "Recover from valid history after a refusal.": (
        "被拒绝之后从有效的历史恢复。",
        "被拒絕之後從有效的歷史恢復。",
    ),
    "Of this session; the newest one here without it.": (
        "指这个会话；不写则是这里最新的。",
        "指這個工作階段；不寫則是這裡最新的。",
    ),
    "Words for the model; they are never read as a command.": (
        "给模型的话；从不当作命令。",
        "給模型的話；從不當作命令。",
    ),
    "As JSON.": ("以 JSON 输出。", "以 JSON 輸出。"),
    "Open calls, and what runs in the background.": (
        "未决调用，以及后台运行的命令。",
        "未決呼叫，以及背景執行的命令。",
    ),
    "Decided and proven ones too.": ("也列出已决定和已证实的。", "也列出已決定和已證實的。"),
    "Of every session here; always so.": ("这里每个会话的；一向如此。", "這裡每個工作階段的；一向如此。"),
    "Of every ledger of this person.": ("这个人的每份账本。", "這個人的每份帳本。"),
    "Only of this session.": ("只限这个会话。", "只限這個工作階段。"),
    "Exit with 3 when any is open.": ("有未决调用时以 3 退出。", "有未決呼叫時以 3 退出。"),
    (
        "Facts, evidence and end of the log of one call, with the code that a decision may need; no "
        "arguments."
    ): (
        "一次调用的事实、证据和日志结尾，以及决定可能需要的代码；不含参数。",
        "一次呼叫的事實、證據和日誌結尾，以及決定可能需要的代碼；不含參數。",
    ),
    "Facts, evidence and end of the log of one call.": (
        "一次调用的事实、证据和日志结尾。",
        "一次呼叫的事實、證據和日誌結尾。",
    ),
    "The card of a call; with several open calls a list first.": (
        "一次调用的卡片；有多个未决调用时先列表。",
        "一次呼叫的卡片；有多個未決呼叫時先列表。",
    ),
    "As JSON; asks nothing.": ("以 JSON 输出；不提问。", "以 JSON 輸出；不提問。"),
    "Look at the world once more and record what was seen.": (
        "再查看一次外部状态，并记录所见。",
        "再查看一次外部狀態，並記錄所見。",
    ),
    "Every open call of this project.": ("这个项目的每次未决调用。", "這個專案的每次未決呼叫。"),
    "It happened.": ("已经发生。", "已經發生。"),
    "The inspection that was read; needed without a terminal.": (
        "读过的那次检查；没有终端时必须给出。",
        "讀過的那次檢查；沒有終端機時必須給出。",
    ),
    "At most 500 characters; never sent to a model.": (
        "最多 500 个字符；从不发给模型。",
        "最多 500 個字元；從不發給模型。",
    ),
    "The code of the card, where it asks for one.": (
        "卡片上的代码（卡片要求时）。",
        "卡片上的代碼（卡片要求時）。",
    ),
    "It did not happen; the fence goes.": ("没有发生；解除拦阻。", "沒有發生；解除攔阻。"),
    "Leave it open and fenced; do not run it again.": (
        "保留未知并继续拦住；不再执行。",
        "保留未知並繼續攔住；不再執行。",
    ),
    "Lift the fence and leave the call open.": ("解除拦阻，调用保留未知。", "解除攔阻，呼叫保留未知。"),
    "Needed without a terminal.": ("没有终端时必须给出。", "沒有終端機時必須給出。"),
    "The code of `recover show`, where it asks for one.": (
        "`recover show` 给出的代码（要求时）。",
        "`recover show` 給出的代碼（要求時）。",
    ),
    ("Run it again with its old key, on new proof that it is absent. Off unless the owner switched it on."): (
        "在重新证实没有发生时，用原来的键再次执行。所有者没有打开时不可用。",
        "在重新證實沒有發生時，用原來的鍵再次執行。所有者沒有開啟時不可用。",
    ),
    "What becomes of a process that a call left running.": (
        "如何处理一次调用留下的进程。",
        "如何處理一次呼叫留下的行程。",
    ),
    "How many calls became unknown and what was said of them. Nothing of it is sent anywhere.": (
        "有多少调用变为未知，以及对它们的决定。不会发送到任何地方。",
        "有多少呼叫變為未知，以及對它們的決定。不會傳送到任何地方。",
    ),
    "Sessions of this project: list, show, resume.": (
        "这个项目的会话：列出、查看、继续。",
        "這個專案的工作階段：列出、查看、繼續。",
    ),
    "Sessions of this project.": ("这个项目的会话。", "這個專案的工作階段。"),
    "Sessions, those with open calls first.": ("会话，有未决调用的在前。", "工作階段，有未決呼叫的在前。"),
    "Of every project.": ("每个项目的。", "每個專案的。"),
    "What happened in a session: words, calls, what may have happened.": (
        "会话中发生了什么：对话、调用、可能已发生的。",
        "工作階段中發生了什麼：對話、呼叫、可能已發生的。",
    ),
    "Print the full id alone.": ("只输出完整的标识。", "只輸出完整的識別碼。"),
    "One session with receipts, evidence and decisions, secrets taken out, as JSON or Markdown.": (
        "一个会话及其收据、证据和决定，去掉机密，以 JSON 或 Markdown 输出。",
        "一個工作階段及其收據、證據和決定，去掉機密，以 JSON 或 Markdown 輸出。",
    ),
    "A session with receipts and evidence, secrets taken out.": (
        "一个会话及其收据和证据，去掉机密。",
        "一個工作階段及其收據和證據，去掉機密。",
    ),
    "json when not said.": ("不写时为 json。", "不寫時為 json。"),
    "Into this new file.": ("写入这个新文件。", "寫入這個新檔案。"),
    "Leave secrets in; only for a person at a terminal.": (
        "保留机密；只限终端前的人。",
        "保留機密；只限終端機前的人。",
    ),
    "The same as --format json.": ("与 --format json 相同。", "與 --format json 相同。"),
    "Give a session a name of up to 80 characters; its id stays.": (
        "给会话取最多 80 个字符的名称；标识不变。",
        "給工作階段取最多 80 個字元的名稱；識別碼不變。",
    ),
    ("Drop a session's words, arguments and results for good; a line for each call that wrote stays."): (
        "永久清除会话的内容、参数和结果；每次写入的调用保留一行。",
        "永久清除工作階段的內容、參數和結果；每次寫入的呼叫保留一行。",
    ),
    "Drop a session's words, arguments and results.": (
        "清除会话的内容、参数和结果。",
        "清除工作階段的內容、參數和結果。",
    ),
    "Also with undecided calls; asks for the session's short id.": (
        "有未决调用时也清除；要求输入会话的短标识。",
        "有未決呼叫時也清除；要求輸入工作階段的短識別碼。",
    ),
    "Do not ask; says nothing about undecided calls.": (
        "不询问；不涉及未决调用。",
        "不詢問；不涉及未決呼叫。",
    ),
    ("Begin a session with another one's conversation and its open calls; nothing of that one changes."): (
        "以另一个会话的对话和未决调用开始新会话；原会话不变。",
        "以另一個工作階段的對話和未決呼叫開始新工作階段；原工作階段不變。",
    ),
    "Copy a session with its open calls.": ("复制会话及其未决调用。", "複製工作階段及其未決呼叫。"),
    "Go on with a session; the flags of a run follow (the same as surefoot -r REF).": (
        "继续一个会话；后面是运行的选项（与 surefoot -r REF 相同）。",
        "繼續一個工作階段；後面是執行的選項（與 surefoot -r REF 相同）。",
    ),
    "Go on with a session; the same as surefoot -r.": (
        "继续一个会话；与 surefoot -r 相同。",
        "繼續一個工作階段；與 surefoot -r 相同。",
    ),
    "What ran when in a session, and where it died.": (
        "会话中何时执行了什么，在哪里终止。",
        "工作階段中何時執行了什麼，在哪裡終止。",
    ),
    "What ran when in a session, and where its process died.": (
        "会话中何时执行了什么，它的进程在哪里终止。",
        "工作階段中何時執行了什麼，它的行程在哪裡終止。",
    ),
    "As text, which is also what it is without a flag.": (
        "以文本输出，不带选项时也是如此。",
        "以文字輸出，不帶選項時也是如此。",
    ),
    "As one SVG: surefoot timeline --svg > run.svg": (
        "输出一个 SVG：surefoot timeline --svg > run.svg",
        "輸出一個 SVG：surefoot timeline --svg > run.svg",
    ),
    "The run strip alone: one cell per call.": (
        "只输出运行条：每次调用一格。",
        "只輸出執行條：每次呼叫一格。",
    ),
    "The facts of the picture, as JSON.": ("以 JSON 输出图中的事实。", "以 JSON 輸出圖中的事實。"),
    "Of the SVG.": ("SVG 的主题。", "SVG 的主題。"),
    "Columns of the text, pixels of the SVG.": ("文本的列数，SVG 的像素数。", "文字的欄數，SVG 的像素數。"),
    "The ledger of this project: verify, path, prune.": (
        "这个项目的账本：核对、路径、清理。",
        "這個專案的帳本：核對、路徑、清理。",
    ),
    "The ledger of this project.": ("这个项目的账本。", "這個專案的帳本。"),
    "Print where the ledger lies, or would lie.": (
        "输出账本所在或将在的位置。",
        "輸出帳本所在或將在的位置。",
    ),
    "One line per project.": ("每个项目一行。", "每個專案一行。"),
    "Check chain, witness and blobs without changing anything; exit code 1 on a finding.": (
        "核对链、见证和数据块，不做改动；有发现时退出码为 1。",
        "核對鏈、見證和資料塊，不做改動；有發現時退出碼為 1。",
    ),
    "Check chain, witness and blobs; change nothing.": (
        "核对链、见证和数据块，不做改动。",
        "核對鏈、見證和資料塊，不做改動。",
    ),
    "After damage: set the ledger of this project aside whole, and begin a new one beside it.": (
        "损坏之后：把这个项目的账本整体移开，在旁边开始新的。",
        "損壞之後：把這個專案的帳本整體移開，在旁邊開始新的。",
    ),
    "After damage: set the ledger aside, begin a new one.": (
        "损坏之后：移开账本，开始新的。",
        "損壞之後：移開帳本，開始新的。",
    ),
    "Remove blobs that nothing names and, with --older-than, old sessions without an open call.": (
        "清除没有引用的数据块；带 --older-than 时也清除没有未决调用的旧会话。",
        "清除沒有引用的資料塊；帶 --older-than 時也清除沒有未決呼叫的舊工作階段。",
    ),
    "Drop what nothing names, and old sessions.": (
        "清除没有引用的内容和旧会话。",
        "清除沒有引用的內容和舊工作階段。",
    ),
    "Drop sessions unchanged for 12h, 30d or 8w, too.": (
        "也清除在 12h、30d 或 8w 内没有变化的会话。",
        "也清除在 12h、30d 或 8w 內沒有變化的工作階段。",
    ),
    "Say what would go, and change nothing.": (
        "只说明会清除什么，不做改动。",
        "只說明會清除什麼，不做改動。",
    ),
    "Do not ask.": ("不询问。", "不詢問。"),
    "Settings and where each comes from: show, path.": (
        "设置及其来源：显示、路径。",
        "設定及其來源：顯示、路徑。",
    ),
    "Settings, and where each value comes from.": ("设置，以及每个值的来源。", "設定，以及每個值的來源。"),
    "Show every setting that holds here.": ("显示在这里生效的每项设置。", "顯示在這裡生效的每項設定。"),
    "Name unit, default and source of each value.": (
        "列出每个值的单位、默认值和来源。",
        "列出每個值的單位、預設值和來源。",
    ),
    "Print a complete example file.": ("输出一个完整的示例文件。", "輸出一個完整的範例檔案。"),
    "Print where the settings file lies, or would lie.": (
        "输出设置文件所在或将在的位置。",
        "輸出設定檔案所在或將在的位置。",
    ),
    "Print the value of one setting that holds here.": (
        "输出一项在这里生效的设置的值。",
        "輸出一項在這裡生效的設定的值。",
    ),
    "Write one setting into your own settings file; other lines stay as they are.": (
        "把一项设置写入你自己的设置文件；其他行保持不变。",
        "把一項設定寫入你自己的設定檔案；其他行保持不變。",
    ),
    "Write one setting into your own settings file.": (
        "把一项设置写入你自己的设置文件。",
        "把一項設定寫入你自己的設定檔案。",
    ),
    "Print the JSON Schema of the settings file.": (
        "输出设置文件的 JSON Schema。",
        "輸出設定檔案的 JSON Schema。",
    ),
    "Of what `recover --json` prints, or of what is sent to a session, instead.": (
        "改为输出 `recover --json` 的内容或发给会话的内容的格式。",
        "改為輸出 `recover --json` 的內容或發給工作階段的內容的格式。",
    ),
    "Of a line of `--output-format json` or `stream-json`, instead.": (
        "改为输出 `--output-format json` 或 `stream-json` 中一行的格式。",
        "改為輸出 `--output-format json` 或 `stream-json` 中一行的格式。",
    ),
    "Of what `session export` writes, instead.": (
        "改为输出 `session export` 写出内容的格式。",
        "改為輸出 `session export` 寫出內容的格式。",
    ),
    "Read every settings file and say what is wrong with it.": (
        "读取每个设置文件，说明其中的错误。",
        "讀取每個設定檔案，說明其中的錯誤。",
    ),
    "Say which rule decides a call: 'Bash(git push -f)'.": (
        "说明哪条规则决定一次调用：'Bash(git push -f)'。",
        "說明哪條規則決定一次呼叫：'Bash(git push -f)'。",
    ),
    "Accept the settings files of this project.": ("接受这个项目的设置文件。", "接受這個專案的設定檔案。"),
    "Accept this project's settings files, MCP servers and packs as they are now.": (
        "按现状接受这个项目的设置文件、MCP 服务器和规则包。",
        "按現狀接受這個專案的設定檔案、MCP 伺服器和規則包。",
    ),
    "Take the word back.": ("收回信任。", "收回信任。"),
    "Check settings, ledger, keys and terminal.": (
        "检查设置、账本、密钥和终端。",
        "檢查設定、帳本、金鑰和終端機。",
    ),
    "Check settings, keys, ledger, processes and terminal; reads only, exit code 1 on a fail.": (
        "检查设置、密钥、账本、进程和终端；只读取，不通过时退出码为 1。",
        "檢查設定、金鑰、帳本、行程和終端機；只讀取，不透過時退出碼為 1。",
    ),
    "The ledgers of every project.": ("每个项目的账本。", "每個專案的帳本。"),
    "The tools a model is offered, with class and reach.": (
        "提供给模型的工具，及其类别和范围。",
        "提供給模型的工具，及其類別和範圍。",
    ),
    (
        "The tools a model is offered, with the name that permission rules use; `check` compares "
        "them with packs."
    ): (
        "提供给模型的工具，以及权限规则使用的名称；`check` 将它们与规则包比较。",
        "提供給模型的工具，以及權限規則使用的名稱；`check` 將它們與規則包比較。",
    ),
    "The models of the settings.": ("设置中的模型。", "設定中的模型。"),
    "The models of the settings; the one that a run would use is marked.": (
        "设置中的模型；运行将使用的那个带标记。",
        "設定中的模型；執行將使用的那個帶標記。",
    ),
    "Which key is found where, never the key: status.": (
        "哪个密钥在哪里找到，从不显示密钥：status。",
        "哪個金鑰在哪裡找到，從不顯示金鑰：status。",
    ),
    "Keys of the model servers.": ("模型服务器的密钥。", "模型伺服器的金鑰。"),
    "Which key is found where; never the key.": (
        "哪个密钥在哪里找到；从不显示密钥。",
        "哪個金鑰在哪裡找到；從不顯示金鑰。",
    ),
    "What an endpoint demands of replayed history.": ("端点对重放历史的要求。", "端點對重放歷史的要求。"),
    "What an endpoint demands of replayed history, declared as data.": (
        "端点对重放历史的要求，以数据声明。",
        "端點對重放歷史的要求，以資料宣告。",
    ),
    "The resolved contract, each key with its origin.": (
        "解析后的约定，每个键带来源。",
        "解析後的約定，每個鍵帶來源。",
    ),
    "A killed agent that tells the truth, in under a minute.": (
        "被终止却如实相告的智能体，不到一分钟。",
        "被終止卻如實相告的智慧體，不到一分鐘。",
    ),
    "A killed agent that tells the truth, in under a minute; needs no key and no network.": (
        "被终止却如实相告的智能体，不到一分钟；不需要密钥和网络。",
        "被終止卻如實相告的智慧體，不到一分鐘；不需要金鑰和網路。",
    ),
    "A strict model server for tests, on this machine.": (
        "本机上用于测试的严格模型服务器。",
        "本機上用於測試的嚴格模型伺服器。",
    ),
    "Print the completion script of a shell.": ("输出 shell 的补全脚本。", "輸出 shell 的補全指令碼。"),
    "Show this message and exit.": ("显示这段说明并退出。", "顯示這段說明並退出。"),
    "Usage: ": ("用法：", "用法："),
    "Options": ("选项", "選項"),
    "Commands": ("命令", "命令"),
}
"""English → 简体, 繁體."""
