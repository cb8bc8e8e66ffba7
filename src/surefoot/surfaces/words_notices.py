"""The words of notices in three languages, as data: one sentence per kind. Pure.

Owns: what is told when something happens that belongs to no call on screen: a write beside an
unknown one, a stopped check, the end of a background command, a turn that is not written yet.
Does not own: which facts a notice has (`runtime`), which sentence is told (`notices`).
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.surfaces.words_table import Texts

NOTICES: Mapping[str, Texts] = {
    "advised": (
        "{attempt} went on beside {unknown} ({tool}), which may have happened; nobody has decided about it yet. "
        "Decide: {command}",
        "{attempt} 已在 {unknown}（{tool}）旁边执行，后者可能已发生，还没有人决定。决定请用：{command}",
        "{attempt} 已在 {unknown}（{tool}）旁邊執行，後者可能已發生，還沒有人決定。決定請用：{command}",
    ),
    "open_elsewhere": (
        "{attempt} went on beside {unknown} ({tool}) of session {session}, which may have happened; nobody has "
        "decided about it yet. Decide: {command}",
        "{attempt} 已在会话 {session} 的 {unknown}（{tool}）旁边执行，后者可能已发生，"
        "还没有人决定。决定请用：{command}",
        "{attempt} 已在工作階段 {session} 的 {unknown}（{tool}）旁邊執行，後者可能已發生，"
        "還沒有人決定。決定請用：{command}",
    ),
    "effect_after_absent": (
        "{attempt} did happen after all, although it had been called absent.",
        "{attempt} 其实已经发生，此前却被认为没有发生。",
        "{attempt} 其實已經發生，此前卻被認為沒有發生。",
    ),
    "not_reconciled": (
        "What the last run left could not be written down yet: {cause} Nothing runs until it can.",
        "上次运行留下的情况还无法写入：{cause} 在此之前不会执行任何操作。",
        "上次執行留下的情況還無法寫入：{cause} 在此之前不會執行任何操作。",
    ),
    "not_inspected": (
        "What was looked at could not be written down: {cause} The fence holds; look again later.",
        "检查的结果无法写入：{cause} 拦阻仍在，请稍后再检查。",
        "檢查的結果無法寫入：{cause} 攔阻仍在，請稍後再檢查。",
    ),
    "tool_without_class": (
        "{tool} declares no effect class: each of its calls counts as one of which nothing is known, and fences "
        "everything.",
        "{tool} 没有声明影响类别：它的每次调用都按影响未知处理，并拦住一切写入。",
        "{tool} 沒有宣告影響類別：它的每次呼叫都按影響未知處理，並攔住一切寫入。",
    ),
    "will_run_again": (
        "A look has changed what runs again. Now it is: {calls}",
        "检查改变了会再次运行的内容，现在是：{calls}",
        "檢查改變了會再次執行的內容，現在是：{calls}",
    ),
    "parked_dropped": (
        "Your press for {attempt} ({word}) was not recorded: {code}: {sentence}",
        "你对 {attempt} 的决定（{word}）没有写入：{code}：{sentence}",
        "你對 {attempt} 的決定（{word}）沒有寫入：{code}：{sentence}",
    ),
    "turn_not_recorded": (
        "The end of this turn is not written yet: {cause} It will be written before the next one begins.",
        "这一轮的结束还没有写入：{cause} 它会在下一轮开始前写入。",
        "這一輪的結束還沒有寫入：{cause} 它會在下一輪開始前寫入。",
    ),
    "outcome_withheld": (
        "The tool ran and its outcome could not be recorded yet.",
        "工具已运行，结果还没能写入。",
        "工具已執行，結果還沒能寫入。",
    ),
    "discard": (
        "What was shown of this reply does not count; it is asked for once more.",
        "此回复中已显示的部分不算数，正在再次请求。",
        "此回覆中已顯示的部分不算數，正在再次請求。",
    ),
    "discard_context_limit": (
        "What was shown of this reply does not count: the conversation is larger than the model's window.",
        "此回复中已显示的部分不算数：对话超出了模型的窗口。",
        "此回覆中已顯示的部分不算數：對話超出了模型的視窗。",
    ),
    "discard_output_limit": (
        "What was shown of this reply does not count: it was cut at the output limit.",
        "此回复中已显示的部分不算数：它在输出上限处被截断。",
        "此回覆中已顯示的部分不算數：它在輸出上限處被截斷。",
    ),
    "call_spelled_out": (
        "The model wrote a tool call as text. Text is never run, so nothing of it happened; it seems that the server's "
        "parser of tool calls is off.",
        "模型把工具调用写成了文字。文字从不执行，所以什么都没有发生；服务器的工具调用解析器似乎没有开启。",
        "模型把工具呼叫寫成了文字。文字從不執行，所以什麼都沒有發生；伺服器的工具呼叫解析器似乎沒有開啟。",
    ),
    "works_otherwise": (
        "Since the last turn of this session: {changes}",
        "与此会话的上一轮相比：{changes}",
        "與此工作階段的上一輪相比：{changes}",
    ),
    "changed_model": (
        "the model is {new}, was {old}",
        "模型是 {new}，先前是 {old}",
        "模型是 {new}，先前是 {old}",
    ),
    "changed_effort": (
        "the effort is {new}, was {old}",
        "思考强度是 {new}，先前是 {old}",
        "思考強度是 {new}，先前是 {old}",
    ),
    "as_before": (
        "This session goes on with {session}, as before; your settings say {settings}. -m and --effort change it.",
        "此会话照旧使用 {session}；你的设置是 {settings}。-m 和 --effort 可以更改。",
        "此工作階段照舊使用 {session}；你的設定是 {settings}。-m 和 --effort 可以更改。",
    ),
    "changed_contract": (
        "the contract is {new}, was {old}",
        "约定是 {new}，先前是 {old}",
        "約定是 {new}，先前是 {old}",
    ),
    "changed_settings": (
        "the project's settings have changed",
        "项目设置已改变",
        "專案設定已改變",
    ),
    "changed_tool": (
        "{name} counts as {new}, was {old}",
        "{name} 现按 {new} 处理，先前是 {old}",
        "{name} 現按 {new} 處理，先前是 {old}",
    ),
    "new_tool": ("{name} ({new}) is new", "新增 {name}（{new}）", "新增 {name}（{new}）"),
    "gone_tool": ("{name} ({old}) is gone", "{name}（{old}）已不在", "{name}（{old}）已不在"),
    "resumes_spent": (
        "This turn was gone on with {times} times and did not come to its end. Say what to do next; that begins a "
        "new turn.",
        "这一轮已继续 {times} 次仍未完成。请说明下一步做什么，这会开始新的一轮。",
        "這一輪已繼續 {times} 次仍未完成。請說明下一步做什麼，這會開始新的一輪。",
    ),
    "empty_reply": (
        "The model answered without a word; it is asked once more.",
        "模型没有回答任何内容，正在再问一次。",
        "模型沒有回答任何內容，正在再問一次。",
    ),
    "ended_empty_reply": (
        "the model answered twice without a word",
        "模型两次没有回答任何内容",
        "模型兩次沒有回答任何內容",
    ),
    "ended_aborted": (
        "its work was aborted, and nobody had asked for that",
        "工作被中止，但没有人要求中止",
        "工作被中止，但沒有人要求中止",
    ),
    "ended_output_limit": (
        "the reply was cut at the output limit before it said anything; a lower effort or a larger limit helps",
        "回复在说出任何内容之前就在输出上限处被截断；降低思考强度或提高上限会有帮助",
        "回覆在說出任何內容之前就在輸出上限處被截斷；降低思考強度或提高上限會有幫助",
    ),
    "ended_invalid_call_repeated": (
        "the model asked three times for the same invalid call",
        "模型三次请求同一个无效调用",
        "模型三次請求同一個無效呼叫",
    ),
    "hosted_unasked": (
        "The provider ran tools of its own that this request had not switched on: {kinds}. No receipt tells of them.",
        "服务商运行了此请求未启用的自有工具：{kinds}。没有回执记录它们做了什么。",
        "供應商執行了此請求未啟用的自有工具：{kinds}。沒有回執記錄它們做了什麼。",
    ),
    "unreplayable_reasoning": (
        "The reasoning of this reply lacks what the provider needs to take it back; it is kept for reading only.",
        "此回复的推理缺少服务商收回它所需的内容，仅供阅读。",
        "此回覆的推理缺少供應商收回它所需的內容，僅供閱讀。",
    ),
    "tool_wait": (
        "{tool} is tried again in {seconds} s (try {number} of {of}).",
        "{tool} 将在 {seconds} 秒后再试（第 {number} 次，共 {of} 次）。",
        "{tool} 將在 {seconds} 秒後再試（第 {number} 次，共 {of} 次）。",
    ),
    "compacting": (
        "The model is asked for a summary; Stop ends that.",
        "正在请模型写摘要；停止键可结束它。",
        "正在請模型寫摘要；停止鍵可結束它。",
    ),
    "compacted": (
        "{messages} messages are replaced by notes, for the model only. Calls in them: {counts}.",
        "{messages} 条消息已由笔记代替，仅对模型而言。其中的调用：{counts}。",
        "{messages} 則訊息已由筆記代替，僅對模型而言。其中的呼叫：{counts}。",
    ),
    "summary_missing": (
        "There is no summary of the model: {cause}",
        "没有得到模型的摘要：{cause}",
        "沒有得到模型的摘要：{cause}",
    ),
    "repeats_settled": (
        "{attempt} repeats {earlier}, which is settled and which the model sees only in its notes.",
        "{attempt} 重复了 {earlier}，后者已有定论，模型只在笔记中看到它。",
        "{attempt} 重複了 {earlier}，後者已有定論，模型只在筆記中看到它。",
    ),
    "hook_fenced": (
        "The hook {command} ({event}) did not run: it may write where {unknown} may have happened. A hook that only "
        'reads passes; say so in your settings with class = "READ_ONLY".',
        "钩子 {command}（{event}）没有运行：{unknown} 可能已发生，而它可能写入同一处。"
        '只读的钩子可以通过，请在你的设置中注明 class = "READ_ONLY"。',
        "掛鉤 {command}（{event}）沒有執行：{unknown} 可能已發生，而它可能寫入同一處。"
        '唯讀的掛鉤可以通過，請在你的設定中註明 class = "READ_ONLY"。',
    ),
    "held_words": (
        "A hook of yours held these words back; no turn began: {reason}",
        "你的一个钩子拦下了这段话，没有开始新的一轮：{reason}",
        "你的一個掛鉤攔下了這段話，沒有開始新的一輪：{reason}",
    ),
    "held_compaction": (
        "A hook of yours held the compaction back; the view stays as it is: {reason}",
        "你的一个钩子拦下了压缩，视图保持不变：{reason}",
        "你的一個掛鉤攔下了壓縮，檢視保持不變：{reason}",
    ),
    "recovery_not_recorded": (
        "The record of this recovery could not be written: {cause}",
        "这次恢复的记录无法写入：{cause}",
        "這次恢復的記錄無法寫入：{cause}",
    ),
    "recovered_request": (
        "The history is sent once more with changes on the copy ({changes}). The one recovery of {incident} is spent.",
        "历史再发送一次，副本上有改动（{changes}）。{incident} 唯一的恢复机会已用完。",
        "歷史再送出一次，副本上有改動（{changes}）。{incident} 唯一的恢復機會已用完。",
    ),
    "background_end": (
        "{command} ({attempt}), which ran in the background, has ended: {end} Log: {log}",
        "在后台运行的 {command}（{attempt}）已结束：{end} 日志：{log}",
        "在背景執行的 {command}（{attempt}）已結束：{end} 記錄：{log}",
    ),
    "end_exit": ("exit code {number}.", "退出码 {number}。", "結束碼 {number}。"),
    "end_signal": ("signal {number}.", "信号 {number}。", "訊號 {number}。"),
    "end_unrecorded": ("nothing says how.", "没有记录它如何结束。", "沒有記錄它如何結束。"),
}
