"""The words of a refused history in three languages, as data: kinds, reasons, ways out. Pure.

Owns: one text per refusal kind (PR-17), per reason why nothing is offered (PR-28), per way out
(PR-45), and the sentences of the protocol card (UX-124 to UX-129). Does not own: which
of them applies (`core.incident`), how a card is drawn (`incident_card`).

No text names a suspected cause, and none is a provider's own (PR-16, PR-18).
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.surfaces.words_table import Texts

KINDS: Mapping[str, Texts] = {
    "replay_pairing": (
        "The provider refused how calls and results stand in the replayed history.",
        "服务商拒绝了重放历史中调用与结果的排列。",
        "服務商拒絕了重送歷史中呼叫與結果的排列。",
    ),
    "replay_reasoning": (
        "The provider refused the replayed history: it asks for reasoning that is not there as it wants it.",
        "服务商拒绝了重放的历史：缺少它要求的推理内容。",
        "服務商拒絕了重送的歷史：缺少它要求的推理內容。",
    ),
    "replay_signature": (
        "The provider refused a signature or sealed part of the replayed history.",
        "服务商拒绝了重放历史中的签名或密封内容。",
        "服務商拒絕了重送歷史中的簽章或密封內容。",
    ),
    "replay_ids": (
        "The provider refused an id in the replayed history.",
        "服务商拒绝了重放历史中的一个标识。",
        "服務商拒絕了重送歷史中的一個識別碼。",
    ),
    "replay_arguments": (
        "The provider refused the arguments of a call in the replayed history.",
        "服务商拒绝了重放历史中某次调用的参数。",
        "服務商拒絕了重送歷史中某次呼叫的參數。",
    ),
    "upstream_reason_missing": (
        "The provider refused the request and gave no reason (status {status}).",
        "服务商拒绝了请求，没有给出原因（状态 {status}）。",
        "服務商拒絕了請求，沒有給出原因（狀態 {status}）。",
    ),
    "upstream_reason_unrecognised": (
        "The provider refused the request and gave no reason that says what is wrong (status {status}).",
        "服务商拒绝了请求，给出的内容没有说明问题所在（状态 {status}）。",
        "服務商拒絕了請求，給出的內容沒有說明問題所在（狀態 {status}）。",
    ),
    "other": (
        "The provider refused the request (status {status}).",
        "服务商拒绝了请求（状态 {status}）。",
        "服務商拒絕了請求（狀態 {status}）。",
    ),
}

NOT_OFFERED: Mapping[str, Texts] = {
    "not_a_replay_refusal": (
        "This refusal is not about the history; recovering would change nothing.",
        "这次拒绝与历史无关，恢复不会改变什么。",
        "這次拒絕與歷史無關，恢復不會改變什麼。",
    ),
    "nothing_to_change": (
        "No repair would change what is sent.",
        "没有修复会改变所发送的内容。",
        "沒有修復會改變所傳送的內容。",
    ),
    "no_replay_in_request": (
        "The request held no call, result or reasoning to repair.",
        "请求中没有可修复的调用、结果或推理。",
        "請求中沒有可修復的呼叫、結果或推理。",
    ),
    "spent": (
        "The one recovery of this history was used.",
        "这段历史的一次恢复已用掉。",
        "這段歷史的一次恢復已用掉。",
    ),
    "newer_record": (
        "A newer version of surefoot wrote the record; this one does not touch it.",
        "记录由更新版本的 surefoot 写下，本版本不会改动。",
        "記錄由更新版本的 surefoot 寫下，本版本不會改動。",
    ),
    "record_lost": (
        "The end of the ledger is missing, so the one recovery counts as used.",
        "账本缺少末尾，这一次恢复按已用掉计。",
        "帳本缺少結尾，這一次恢復按已用掉計。",
    ),
    "already_repaired": (
        "This step was repaired once, and refused again.",
        "这一步已修复过一次，仍被拒绝。",
        "這一步已修復過一次，仍被拒絕。",
    ),
    "storage_failed": (
        "The offer could not be written down, so it is not made.",
        "无法记下这次恢复，因此不提供。",
        "無法記下這次恢復，因此不提供。",
    ),
    "new_input": ("New words came since.", "此后已有新的输入。", "此後已有新的輸入。"),
    "scope_changed": (
        "Model, endpoint or contract changed since.",
        "此后模型、端点或契约已改变。",
        "此後模型、端點或契約已改變。",
    ),
    "history_moved": ("The history has moved on.", "历史已经前进。", "歷史已經前進。"),
    "evidence_changed": (
        "What is known of a call has changed since.",
        "此后对某次调用的了解已改变。",
        "此後對某次呼叫的了解已改變。",
    ),
    "anchor_missing": (
        "The refused messages are no longer there.",
        "被拒绝的消息已不存在。",
        "被拒絕的訊息已不存在。",
    ),
    "guidance_too_long": (
        "The guidance is longer than 16 KiB.",
        "说明超过 16 KiB。",
        "說明超過 16 KiB。",
    ),
    "unavailable": ("There is nothing to recover here.", "这里没有可恢复的内容。", "這裡沒有可恢復的內容。"),
}

WAYS: Mapping[str, Texts] = {
    "resume_unchanged": ("go on unchanged", "原样继续", "原樣繼續"),
    "write_a_message": ("write a message", "写一条消息", "寫一則訊息"),
    "fork_before": ("fork before the refused turn", "在被拒绝的一轮之前分叉", "在被拒絕的一輪之前分支"),
    "change_settings": (
        "change model, endpoint, wire or thinking",
        "更换模型、端点、协议或思考设置",
        "更換模型、端點、協定或思考設定",
    ),
    "start_from_summary": ("compact, or start from a summary", "压缩或从摘要开始", "壓縮或從摘要開始"),
    "export": ("export the session", "导出会话", "匯出工作階段"),
}

OUTCOMES: Mapping[str, Texts] = {
    "recovered": ("it was answered", "已得到回答", "已得到回答"),
    "refused": ("it was refused again", "再次被拒绝", "再次被拒絕"),
    "failed": ("it failed on the way", "途中失败", "途中失敗"),
    "cancelled": ("it was stopped", "已停止", "已停止"),
    "none": ("what became of it is not recorded", "结果没有记录", "結果沒有記錄"),
}

LINES: Mapping[str, Texts] = {
    "row_pending": (
        "{incident} {kind}: refused; one recovery is left — surefoot recover context {incident}",
        "{incident} {kind}：被拒绝，还可恢复一次 — surefoot recover context {incident}",
        "{incident} {kind}：被拒絕，還可恢復一次 — surefoot recover context {incident}",
    ),
    "row_consumed": (
        "{incident} {kind}: refused; its one recovery is spent",
        "{incident} {kind}：被拒绝，唯一的恢复机会已用完",
        "{incident} {kind}：被拒絕，唯一的恢復機會已用完",
    ),
    "row_regeneration": (
        "{incident}: a reply without the reasoning that is asked for later; it was asked for once more",
        "{incident}：回复缺少之后会要求的推理，已再请求一次",
        "{incident}：回覆缺少之後會要求的推理，已再請求一次",
    ),
    "row_expired": (
        "{incident} {kind}: refused; it can no longer be recovered",
        "{incident} {kind}：被拒绝，已不能再恢复",
        "{incident} {kind}：被拒絕，已不能再恢復",
    ),
    "row_moved": (
        "{incident} {kind}: refused; the session or its settings have changed since, so it is not recovered as it is",
        "{incident} {kind}：被拒绝，此后会话或其设置已改变，因此不能按原样恢复",
        "{incident} {kind}：被拒絕，此後工作階段或其設定已改變，因此不能按原樣恢復",
    ),
    "regeneration": (
        "The reply lacked reasoning that the provider asks for later. Nothing was refused; no call of that reply ran.",
        "服务商的回复缺少它之后会要求的推理。没有被拒绝，该回复中的调用也没有运行。",
        "服務商的回覆缺少它之後會要求的推理。沒有被拒絕，該回覆中的呼叫也沒有執行。",
    ),
    "offer": (
        "Recover from valid history: one request, once ({changes}).",
        "可从有效历史恢复：只发送一次请求（{changes}）。",
        "可從有效歷史恢復：只傳送一次請求（{changes}）。",
    ),
    "press": (
        "/recover-context [words]  ·  surefoot recover context {incident}",
        "/recover-context [说明]  ·  surefoot recover context {incident}",
        "/recover-context [說明]  ·  surefoot recover context {incident}",
    ),
    "keys": (
        "p send again from valid history · m another model · e export · b branch from an earlier turn · Esc later",
        "p 从有效历史重新发送 · m 换模型 · e 导出 · b 从较早的一轮分叉 · Esc 稍后",
        "p 從有效歷史重新傳送 · m 換模型 · e 匯出 · b 從較早的一輪分支 · Esc 稍後",
    ),
    "trace": ("trace id {trace}", "跟踪号 {trace}", "追蹤號 {trace}"),
    "rules": ("rules {rules}", "规则 {rules}", "規則 {rules}"),
    "code": ("code {value}", "代码 {value}", "代碼 {value}"),
    "param": ("parameter {value}", "参数 {value}", "參數 {value}"),
    "endpoint": ("endpoint {value}", "端点 {value}", "端點 {value}"),
    "contract": ("contract {value}", "契约 {value}", "契約 {value}"),
    "done": (
        "Calls done so far: {done}; may have happened: {open}.",
        "已完成 {done} 次调用；可能已发生 {open} 次。",
        "已完成 {done} 次呼叫；可能已發生 {open} 次。",
    ),
    "advice": (
        "Not to repeat finished work is advice to the model; a call it repeats all the same is answered from its "
        "receipt, or counted.",
        "不重复已完成的工作只是给模型的建议；它仍重复的调用由回执回答，或计入次数。",
        "不重複已完成的工作只是給模型的建議；它仍重複的呼叫由回執回答，或計入次數。",
    ),
    "ways": ("What else can be done: {ways}.", "其他办法：{ways}。", "其他辦法：{ways}。"),
    "spent": (
        "The one request of this incident was sent: {outcome}.",
        "这次事件的唯一请求已处理：{outcome}。",
        "這次事件的唯一請求已處理：{outcome}。",
    ),
    "carrier": ("messages without their reasoning: {n}", "{n} 处省略推理", "{n} 處省略推理"),
    "segment": ("tool rounds told as facts: {n}", "{n} 轮工具调用改为事实", "{n} 輪工具呼叫改為事實"),
    "ids": ("messages without item ids: {n}", "{n} 处省略条目标识", "{n} 處省略項目識別碼"),
    "other": ("{rid} on messages: {n}", "{n} 处应用 {rid}", "{n} 處套用 {rid}"),
    "blocks": ("foreign blocks dropped by the service", "由服务端丢弃外来块", "由服務端丟棄外來區塊"),
}
