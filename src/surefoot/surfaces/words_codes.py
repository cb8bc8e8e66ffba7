"""Codes and the sentence of each, in three languages, as data. Pure.

Owns: why an unknown call is unknown, why a call did not run, why an action was
refused (TR-41, TR-125), why a person is required (UX-65). Does not own: which code
applies (`core`). One code has one sentence on every surface, and a code is never reused.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.surfaces.words_table import Texts

CAUSES: Mapping[str, Texts] = {
    "cancelled": ("It was stopped while it ran.", "它在执行时被停止。", "它在執行時被停止。"),
    "time_limit": (
        "Its time was over before a result came.",
        "在得到结果之前，它的时间已到。",
        "在得到結果之前，它的時間已到。",
    ),
    "connection_lost": (
        "The connection broke before an answer came.",
        "在得到答复之前，连接断开。",
        "在得到答覆之前，連線斷開。",
    ),
    "process_signal": ("Its process was ended by a signal.", "它的进程被信号结束。", "它的行程被訊號結束。"),
    "undecided_exception": (
        "The tool raised an exception that does not tell whether it acted.",
        "工具抛出了异常，看不出它是否已起作用。",
        "工具拋出了例外，看不出它是否已起作用。",
    ),
    "owner_died": ("The process that ran it died.", "执行它的进程已终止。", "執行它的行程已終止。"),
    "child_open": (
        "A call inside it may have happened.",
        "其中一次调用可能已发生。",
        "其中一次呼叫可能已發生。",
    ),
    "ledger_tail_lost": ("The end of the ledger is missing.", "账本缺少末尾。", "帳本缺少結尾。"),
    "declared": ("The tool itself cannot tell.", "工具自己也不能确定。", "工具自己也不能確定。"),
    "no_evidence": (
        "Nothing recorded shows how it ended.",
        "没有记录能说明它如何结束。",
        "沒有記錄能說明它如何結束。",
    ),
}
"""`reason` of an unknown call."""

NOT_RUN: Mapping[str, Texts] = {
    "arguments_invalid": ("its arguments are not valid", "参数无效", "參數無效"),
    "tool_missing": ("there is no such tool", "没有这个工具", "沒有這個工具"),
    "schema_unusable": (
        "the schema of the tool cannot be used",
        "工具的参数说明无法使用",
        "工具的參數說明無法使用",
    ),
    "permission_denied": ("permission was not given", "没有得到许可", "沒有得到許可"),
    "nobody_to_ask": ("nobody to ask", "没有人可以询问", "沒有人可以詢問"),
    "approval_expired": (
        "the question was withdrawn or ran out before a yes",
        "询问在得到同意之前已撤回或过期",
        "詢問在得到同意之前已撤回或過期",
    ),
    "fenced": (
        "an earlier call may have reached the same place",
        "先前的调用可能已到达同一处",
        "先前的呼叫可能已到達同一處",
    ),
    "confirmed_effect": (
        "a person said the same call happened before",
        "有人确认过同样的调用已发生",
        "有人確認過同樣的呼叫已發生",
    ),
    "look_first": (
        "the same call failed and may have left something; look first",
        "同样的调用曾失败，可能留下部分结果，请先查看",
        "同樣的呼叫曾失敗，可能留下部分結果，請先查看",
    ),
    "answered_from_receipt": ("the stored result was given again", "给出的是已存结果", "給出的是已存結果"),
    "postcondition_satisfied": (
        "what it would bring about is there already",
        "它要达到的状态已经存在",
        "它要達到的狀態已經存在",
    ),
    "batch_dependency": (
        "an earlier call of the same reply has to be settled first",
        "同一回复中较早的调用要先有定论",
        "同一回覆中較早的呼叫要先有定論",
    ),
    "hook_refused": ("a hook refused it", "被钩子拦下", "被掛鉤攔下"),
    "hook_unstable": ("a hook changed it again and again", "钩子反复改动了它", "掛鉤反覆改動了它"),
    "receipt_not_durable": ("its receipt could not be written", "回执无法写入", "回執無法寫入"),
    "lease_lost": (
        "this process no longer owns the session",
        "本进程已不再拥有该会话",
        "本行程已不再擁有該工作階段",
    ),
    "truncated_call": ("the reply of the model was cut off", "模型的回复被截断", "模型的回覆被截斷"),
    "duplicate_call": (
        "the same call stands twice in one reply",
        "同一回复中重复了同样的调用",
        "同一回覆中重複了同樣的呼叫",
    ),
    "ledger_file": ("it names a file of the ledger", "它指向账本的文件", "它指向帳本的檔案"),
    "deadline_too_short": ("too little time was left for it", "剩下的时间不够", "剩下的時間不夠"),
    "cancelled_before_start": ("it was stopped before its start", "开始之前就被停止", "開始之前就被停止"),
    "retry_target_changed": (
        "it would no longer be the same call",
        "它已不再是原来的调用",
        "它已不再是原來的呼叫",
    ),
    "owner_died_before_start": (
        "its process died before the start",
        "开始之前进程已终止",
        "開始之前行程已終止",
    ),
    "looking_only": ("looking only", "只查看", "只查看"),
}
"""`reason` of a call that did not start, as the end of "did not run: …"."""

FAILED: Mapping[str, Texts] = {
    "never_ran": ("its body was never entered", "从未进入工具本身", "從未進入工具本身"),
    "changed_underneath": ("the file changed underneath", "文件在此期间被改动", "檔案在此期間被改動"),
}
"""`reason` of a failed call."""

REFUSALS: Mapping[str, Texts] = {
    "unauthenticated": ("Log in first.", "请先登录。", "請先登入。"),
    "unsupported": ("This runtime has no recovery.", "这个运行环境不支持恢复。", "這個執行環境不支援恢復。"),
    "bad_request": ("The request is not well formed.", "请求格式不正确。", "請求格式不正確。"),
    "unknown_field": (
        "The request has a field that is not known here.",
        "请求中有未知字段。",
        "請求中有未知欄位。",
    ),
    "body_too_large": ("The request is too large.", "请求过大。", "請求過大。"),
    "unknown_action": ("There is no such action.", "没有这个操作。", "沒有這個操作。"),
    "session_required": (
        "Name the session, there are several.",
        "有多个会话，请指明。",
        "有多個工作階段，請指明。",
    ),
    "session_header_mismatch": (
        "Another session is on screen.",
        "屏幕上是另一个会话。",
        "畫面上是另一個工作階段。",
    ),
    "not_foreground": (
        "Another window leads this session.",
        "该会话由另一个窗口主导。",
        "該工作階段由另一個視窗主導。",
    ),
    "session_mismatch": (
        "This call belongs to another session.",
        "这次调用属于另一个会话。",
        "這次呼叫屬於另一個工作階段。",
    ),
    "running": (
        "A turn is running. Stop it or wait.",
        "正在执行一轮，请停止或等待。",
        "正在執行一輪，請停止或等待。",
    ),
    "finishing": ("A turn is ending. Wait a moment.", "一轮正在结束，请稍候。", "一輪正在結束，請稍候。"),
    "rotating": (
        "The history is being rewritten. Wait a moment.",
        "历史正在重写，请稍候。",
        "歷史正在重寫，請稍候。",
    ),
    "closed": (
        "The session is closed. Resume it first.",
        "会话已关闭，请先恢复。",
        "工作階段已關閉，請先恢復。",
    ),
    "not_owner": (
        "Another process owns this session.",
        "该会话由另一个进程拥有。",
        "該工作階段由另一個行程擁有。",
    ),
    "lease_lost": (
        "This process no longer owns the session.",
        "本进程已不再拥有该会话。",
        "本行程已不再擁有該工作階段。",
    ),
    "epoch_stale": (
        "The session has a new owner. Read it again.",
        "会话已换了拥有者，请重新读取。",
        "工作階段已換了擁有者，請重新讀取。",
    ),
    "revision_stale": (
        "The facts have changed. Read them again.",
        "事实已变化，请重新读取。",
        "事實已變化，請重新讀取。",
    ),
    "attempt_unknown": ("There is no such call here.", "这里没有这次调用。", "這裡沒有這次呼叫。"),
    "already_resolved": ("This call was decided before.", "这次调用先前已有决定。", "這次呼叫先前已有決定。"),
    "question_unknown": ("There is no such question here.", "这里没有这个问题。", "這裡沒有這個問題。"),
    "question_closed": (
        "This question was closed before. Your answer is kept and was not delivered.",
        "这个问题先前已关闭。你的回答已保留，但没有送达。",
        "這個問題先前已關閉。你的回答已保留，但沒有送達。",
    ),
    "question_not_shown": (
        "This question is asked again when the session goes on. Answer it then.",
        "会话继续时会再次提出这个问题，请届时回答。",
        "工作階段繼續時會再次提出這個問題，請屆時回答。",
    ),
    "person_required": ("Only a person may decide this.", "这只能由人决定。", "這只能由人決定。"),
    "inspection_required": ("Look first: inspect it.", "请先检查。", "請先檢查。"),
    "inspection_stale": (
        "There is newer evidence. Look at it first.",
        "有更新的证据，请先查看。",
        "有更新的證據，請先查看。",
    ),
    "executor_alive": (
        "That run has not ended. Stop it or wait first.",
        "那次执行还没有结束，请先停止它或等待。",
        "那次執行還沒有結束，請先停止它或等待。",
    ),
    "retry_disabled": (
        "Running again is switched off on this host.",
        "本机没有打开再次执行。",
        "本機沒有開啟再次執行。",
    ),
    "retry_attempts_spent": ("No further attempt is left.", "没有剩余的尝试次数。", "沒有剩餘的嘗試次數。"),
    "retry_rejected": (
        "A person said not to run it again.",
        "有人说过不要再次执行。",
        "有人說過不要再次執行。",
    ),
    "retry_executor_alive": (
        "It is not proven that the older run has ended.",
        "还不能证明先前的执行已经结束。",
        "還不能證明先前的執行已經結束。",
    ),
    "retry_tool_missing": ("The tool is not here any more.", "这个工具已不存在。", "這個工具已不存在。"),
    "retry_verifier_missing": (
        "Nothing here can check this call.",
        "这里没有办法核实这次调用。",
        "這裡沒有辦法核實這次呼叫。",
    ),
    "retry_scope_changed": (
        "The tool would now act elsewhere or more strictly.",
        "工具现在的作用范围已不同。",
        "工具現在的作用範圍已不同。",
    ),
    "retry_effect_not_absent": (
        "It is not shown that it left no trace.",
        "还没有显示它没有留下痕迹。",
        "還沒有顯示它沒有留下痕跡。",
    ),
    "retry_at_origin": (
        "Run it again where it was made, not in a copy.",
        "请在原会话中再次执行，不在副本中。",
        "請在原工作階段中再次執行，不在副本中。",
    ),
    "retry_key_expired": (
        "Its key has expired at the far side.",
        "它的键在对方已过期。",
        "它的鍵在對方已過期。",
    ),
    "retry_target_changed": (
        "Its target changed on the way.",
        "它的目标在途中变了。",
        "它的目標在途中變了。",
    ),
    "process_missing": (
        "This call started no process under supervision.",
        "这次调用没有启动受监管的进程。",
        "這次呼叫沒有啟動受監管的行程。",
    ),
    "storage_failed": (
        "The record could not be written; all is as before.",
        "记录无法写入，一切如前。",
        "記錄無法寫入，一切如前。",
    ),
    "recovery_unavailable": (
        "No protocol recovery is on offer.",
        "没有可用的协议恢复。",
        "沒有可用的協定恢復。",
    ),
    "recovery_stale": (
        "The history has changed since. Read it again.",
        "历史已变化，请重新读取。",
        "歷史已變化，請重新讀取。",
    ),
    "recovery_spent": ("This incident was used before.", "这次事件已经用过。", "這次事件已經用過。"),
}
"""Refusals of an action (TR-125, PR-31)."""

REASONS: Mapping[str, Texts] = {
    "descendant_of_tool": ("The command was started by a tool.", "该命令由工具启动。", "該命令由工具啟動。"),
    "inside_tool_body": ("It was asked from inside a tool.", "请求来自工具内部。", "請求來自工具內部。"),
    "assurance_too_low": (
        "Your settings want more than the word of this account.",
        "你的设置要求比本账户更强的身份保证。",
        "你的設定要求比本帳戶更強的身分保證。",
    ),
    "code_missing": ("Type the code printed on the card.", "请输入卡片上的代码。", "請輸入卡片上的代碼。"),
    "uncertain": (
        "It is not known yet whether this was written. Nothing else runs.",
        "还不知道这是否已写入，暂不执行其他操作。",
        "還不知道這是否已寫入，暫不執行其他操作。",
    ),
    "id_missing": ("Name the incident.", "请指明事件。", "請指明事件。"),
    "format_not_supported": ("No format can be asked for here.", "这里不能指定格式。", "這裡不能指定格式。"),
}
"""Further reasons beside a code."""
