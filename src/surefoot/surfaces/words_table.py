"""The words of recovery in three languages, as data: states, choices, sentences. Pure.

Owns: every text of a card, a row and a resume line (UX-63, UX-64). Does not own:
codes of refusals (`words_codes`), how a text is looked up (`words`).

Each text stands in English, 简体, 繁體. A row of `STATES` also lists the English
words that may never stand for that state; `BANNED_CHINESE` gives their Chinese forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from surefoot.surfaces.words_process import LEFT

Texts = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class State:
    """How one fact about a call is marked and told."""

    mark: str
    ascii: str
    texts: Texts
    never: tuple[str, ...]


STATES: Mapping[str, State] = {
    "dispatched": State("○", "-", ("waiting to start", "等待开始", "等待開始"), ("running",)),
    "not_started": State("○", "-", ("never started", "从未开始", "從未開始"), ("failed", "rejected")),
    "not_started_refused": State(
        "⊘", "/", ("did not run: {reason}", "未执行：{reason}", "未執行：{reason}"), ("failed", "by you")
    ),
    "started": State("◐", "~", ("running", "执行中", "執行中"), ("done",)),
    "succeeded": State("●", "+", ("done", "已完成", "已完成"), ()),
    "failed": State("✗", "!", ("failed", "失败", "失敗"), ()),
    "failed_possible": State(
        "✗",
        "!",
        ("failed; part of it may have happened", "失败，可能已有部分生效", "失敗，可能已有部分生效"),
        ("nothing happened", "safe"),
    ),
    "unknown": State(
        "◇",
        "?",
        ("may have happened", "可能已发生", "可能已發生"),
        ("done", "failed", "error", "interrupted", "aborted", "cancelled", "timed out", "rejected"),
    ),
    "present_proof": State("◈", "#", ("proved: it happened", "已证实发生", "已證實發生"), ("done",)),
    "present": State(
        "◇", "?", ("signs say it happened", "有迹象表明已发生", "有跡象顯示已發生"), ("proved", "done")
    ),
    "postcondition_satisfied": State(
        "≈", "=", ("the state matches", "当前状态相符", "目前狀態相符"), ("done", "happened")
    ),
    "absent_fenced": State(
        "⊖",
        "0",
        (
            "no trace of it, and that attempt can act no more",
            "没有发现它的痕迹，那次执行也不会再起作用",
            "沒有發現它的痕跡，那次執行也不會再起作用",
        ),
        ("failed", "did not happen"),
    ),
    "inspection_unknown": State(
        "◇", "?", ("still not known", "仍然未知", "仍然未知"), ("clean", "nothing found")
    ),
    "confirmed": State(
        "◆", "Y", ("{who} said it happened", "{who}确认已发生", "{who}確認已發生"), ("done", "proved")
    ),
    "denied": State(
        "▢",
        "N",
        ("{who} said it did not happen", "{who}确认没有发生", "{who}確認沒有發生"),
        ("failed", "proved"),
    ),
    "rejected": State(
        "⊟",
        "L",
        ("left open, still fenced", "保留未知，仍被拦住", "保留未知，仍被攔住"),
        ("resolved", "closed"),
    ),
    "released": State(
        "⊡", "R", ("left open, fence lifted", "保留未知，已放行", "保留未知，已放行"), ("resolved", "safe")
    ),
    "superseded": State(
        "↻",
        ">",
        ("run again as {attempt}", "已作为 {attempt} 再次执行", "已作為 {attempt} 再次執行"),
        ("retried by itself",),
    ),
    "late": State("↶", "<", ("a result came late", "结果迟到", "結果遲到"), ("done",)),
    "background": State(
        "▸", "&", ("running in the background", "在后台运行", "在背景執行"), ("done", "open")
    ),
}

BANNED_CHINESE: Mapping[str, tuple[str, ...]] = {
    "running": ("执行中", "執行中"),
    "failed": ("失败", "失敗"),
    "rejected": ("拒绝", "拒絕"),
    "done": ("已完成", "完成"),
    "nothing happened": ("什么也没发生", "什麼也沒發生"),
    "safe": ("安全",),
    "error": ("错误", "錯誤"),
    "interrupted": ("中断", "中斷"),
    "aborted": ("中止",),
    "cancelled": ("取消",),
    "timed out": ("超时", "逾時", "超時"),
    "proved": ("证实", "證實"),
    "happened": ("发生", "發生"),
    "did not happen": ("没有发生", "沒有發生"),
    "clean": ("干净", "乾淨"),
    "nothing found": ("没有发现", "沒有發現"),
    "resolved": ("已解决", "已解決"),
    "closed": ("已关闭", "已關閉"),
    "retried by itself": ("自动重试", "自動重試"),
    "open": ("未决", "未決"),
    "by you": ("被你", "由你"),
}

SENTENCES: Mapping[str, Texts] = {
    "confirm": ("it happened", "已经发生", "已經發生"),
    "deny": ("it did not happen", "没有发生", "沒有發生"),
    "reject": ("leave it open", "保留未知", "保留未知"),
    "release": ("lift the fence", "解除拦阻", "解除攔阻"),
    "retry": ("run it again", "再次执行", "再次執行"),
    "inspect": ("look again", "再检查一次", "再檢查一次"),
    "code": ("{keys}: then type {code}", "{keys}：再输入 {code}", "{keys}：再輸入 {code}"),
    "ask_model": ("ask the model to look", "让模型去查看", "讓模型去查看"),
    "later": ("later", "稍后", "稍後"),
    "details": ("details", "详情", "詳情"),
    "go_on": ("continue", "继续", "繼續"),
    "known": (
        "Started {time}. No result was written.",
        "{time} 开始，没有写下结果。",
        "{time} 開始，沒有寫下結果。",
    ),
    "not_known": (
        "It may or may not have reached {reach}.",
        "它可能已到达 {reach}，也可能没有。",
        "它可能已到達 {reach}，也可能沒有。",
    ),
    "next_wait": (
        "Nothing more runs until you decide.",
        "在你决定之前，不会再执行任何操作。",
        "在你決定之前，不會再執行任何操作。",
    ),
    "next_fence": (
        "Until you decide, writes to {reach} wait. Everything else works.",
        "在你决定之前，对 {reach} 的写入会等待，其他操作照常。",
        "在你決定之前，對 {reach} 的寫入會等待，其他操作照常。",
    ),
    "no_verifier": (
        "Nothing here can check this call.",
        "这里没有办法核实这次调用。",
        "這裡沒有辦法核實這次呼叫。",
    ),
    "quiet": (
        "Resumed. {n} calls settled, 0 open.",
        "已恢复会话：{n} 次调用已有定论，0 次未决。",
        "已恢復工作階段：{n} 次呼叫已有定論，0 次未決。",
    ),
    "quiet_one": (
        "Resumed. {n} call settled, 0 open.",
        "已恢复会话：{n} 次调用已有定论，0 次未决。",
        "已恢復工作階段：{n} 次呼叫已有定論，0 次未決。",
    ),
    "foreseen": (
        "(proved by its record; written at the next resume)",
        "（已由其记录证实，下次恢复时写入）",
        "（已由其記錄證實，下次恢復時寫入）",
    ),
    "not_known_any": (
        "It may or may not have taken effect.",
        "它可能已经生效，也可能没有。",
        "它可能已經生效，也可能沒有。",
    ),
    "next_fence_all": (
        "Until you decide, every write of this session waits. Reading works.",
        "在你决定之前，本会话的所有写入都会等待，读取照常。",
        "在你決定之前，本工作階段的所有寫入都會等待，讀取照常。",
    ),
    "next_fence_same": (
        "Until you decide, this same call waits. Everything else works.",
        "在你决定之前，同样的调用会等待，其他操作照常。",
        "在你決定之前，同樣的呼叫會等待，其他操作照常。",
    ),
    "next_none": ("Nothing waits for your decision.", "没有操作在等待你的决定。", "沒有操作在等待你的決定。"),
    "inspect_far": (
        "look further (asks {host})",
        "进一步检查（会访问 {host}）",
        "進一步檢查（會連到 {host}）",
    ),
    "left_out": (
        "{n} more calls are not listed here; surefoot recover show ID shows any of them, and limits.snapshot_calls "
        "and limits.snapshot_bytes say how many are listed.",
        "还有 {n} 个调用未在此列出；surefoot recover show ID 可查看其中任何一个，limits.snapshot_calls 和 "
        "limits.snapshot_bytes 决定列出多少。",
        "還有 {n} 個呼叫未在此列出；surefoot recover show ID 可查看其中任何一個，limits.snapshot_calls 和 "
        "limits.snapshot_bytes 決定列出多少。",
    ),
    "will_run_approved": (
        "On continue, what you allowed before the end will run: {calls}",
        "继续后将执行你在中断前已允许的调用：{calls}",
        "繼續後將執行你在中斷前已允許的呼叫：{calls}",
    ),
    "will_reask": (
        "On continue, you will be asked again about: {calls}",
        "继续后将再次询问你：{calls}",
        "繼續後將再次詢問你：{calls}",
    ),
    "will_rerun": (
        "On continue, will run again: {calls}",
        "继续后将再次执行：{calls}",
        "繼續後將再次執行：{calls}",
    ),
    "executor_alive": (
        "That run has not ended. Stop it or wait first.",
        "那次执行还没有结束，请先停止它或等待。",
        "那次執行還沒有結束，請先停止它或等待。",
    ),
    "release_alive": (
        "{what} may still act; lifting the fence stops nothing.",
        "{what} 可能仍会起作用，解除拦阻并不会停止它。",
        "{what} 可能仍會起作用，解除攔阻並不會停止它。",
    ),
    "ending": (
        "Told to end; killed after {seconds} s.",
        "已要求结束，{seconds} 秒后强制终止。",
        "已要求結束，{seconds} 秒後強制終止。",
    ),
    "check_stopped": (
        "Stopped before its end. It was a check: nothing waits for it.",
        "未结束就被停止。这是检查，不拦住其他操作。",
        "未結束就被停止。這是檢查，不攔住其他操作。",
    ),
    "parked": (
        "Noted, not yet recorded. It counts from the next step.",
        "已记下，尚未写入，从下一步起生效。",
        "已記下，尚未寫入，從下一步起生效。",
    ),
    "uncertain": (
        "It is not known yet whether this was written. Nothing else runs.",
        "还不知道这是否已写入，暂不执行其他操作。",
        "還不知道這是否已寫入，暫不執行其他操作。",
    ),
    "look_first": (
        "It failed and may have left something. Look first, then repeat it.",
        "它失败了，可能已留下部分结果。请先查看，再重复。",
        "它失敗了，可能已留下部分結果。請先查看，再重複。",
    ),
    "from_receipt": (
        "Stored result given again; not run.",
        "给出的是已存结果，没有再次执行。",
        "給出的是已存結果，沒有再次執行。",
    ),
    "tail_lost": (
        "The end of this ledger is missing. Calls waiting to start may have happened.",
        "这份账本缺少末尾，等待开始的调用可能已经发生。",
        "這份帳本缺少結尾，等待開始的呼叫可能已經發生。",
    ),
    "crash_loop": (
        "Its process died {n} times in {minutes} min. Nothing runs until you continue.",
        "它的进程在 {minutes} 分钟内终止了 {n} 次，在你继续之前不会执行任何操作。",
        "它的行程在 {minutes} 分鐘內終止了 {n} 次，在你繼續之前不會執行任何操作。",
    ),
    "no_sources": (
        "The search finished; the provider gave no usable sources.",
        "搜索完成，服务商没有给出可用的来源。",
        "搜尋完成，供應商沒有給出可用的來源。",
    ),
    "refused_mute": (
        "The provider refused this request and gave no reason (HTTP 400).",
        "服务商拒绝了这次请求，没有说明原因（HTTP 400）。",
        "供應商拒絕了這次請求，沒有說明原因（HTTP 400）。",
    ),
    "who_person": ("a person", "有人", "有人"),
    "who_you": ("you", "你", "你"),
    "label_known": ("known", "已知", "已知"),
    "label_not_known": ("not known", "未知", "未知"),
    "label_next": ("next", "接下来", "接下來"),
    "label_checked": ("checked", "已检查", "已檢查"),
    "does_not_prove": ("does not show {what}", "不能说明 {what}", "不能說明 {what}"),
    "copied": (
        "Copied from {attempt} of session {session}.",
        "复制自会话 {session} 的 {attempt}。",
        "複製自工作階段 {session} 的 {attempt}。",
    ),
    "there_decided": ("There: {what}.", "在那里：{what}。", "在那裡：{what}。"),
    "there_open": (
        "There nobody had decided when it was looked at.",
        "检查时那里还没有人决定。",
        "檢查時那裡還沒有人決定。",
    ),
    "known_before_start": (
        "Whether it started is not written.",
        "没有写下它是否开始。",
        "沒有寫下它是否開始。",
    ),
    "of": ("{n} of {all}", "第 {n} 个，共 {all} 个", "第 {n} 個，共 {all} 個"),
    "resumed": (
        'Resumed "{name}" · {settled} settled · {open} may have happened',
        "已恢复“{name}” · {settled} 次已有定论 · {open} 次可能已发生",
        "已恢復「{name}」 · {settled} 次已有定論 · {open} 次可能已發生",
    ),
    "stopped": ("stopped", "已停止", "已停止"),
    "count_succeeded": ("{n} done", "{n} 次已完成", "{n} 次已完成"),
    "count_failed": ("{n} failed", "{n} 次失败", "{n} 次失敗"),
    "count_unknown": ("{n} may have happened", "{n} 次可能已发生", "{n} 次可能已發生"),
    "count_not_started": ("{n} never started", "{n} 次从未开始", "{n} 次從未開始"),
    "count_ending": ("{n} still ending", "{n} 次仍在结束", "{n} 次仍在結束"),
    "count_check": ("{n} checks stopped", "{n} 次检查被停止", "{n} 次檢查被停止"),
    "count_check_one": ("{n} check stopped", "{n} 次检查被停止", "{n} 次檢查被停止"),
    "count_nothing": ("nothing had started", "没有开始任何操作", "沒有開始任何操作"),
    "stop_not_written": (
        "The stop is not written yet; it will be.",
        "停止尚未写入，稍后会写入。",
        "停止尚未寫入，稍後會寫入。",
    ),
    "executor_ended": ("That run has ended.", "那次执行已经结束。", "那次執行已經結束。"),
    "executor_not_proven": (
        "It is not proven that this run has ended.",
        "还不能证明那次执行已经结束。",
        "還不能證明那次執行已經結束。",
    ),
    "executor_runs": ("That run has not ended.", "那次执行还没有结束。", "那次執行還沒有結束。"),
    "what_process": ("A detached child", "脱离的子进程", "脫離的子行程"),
    "what_run": ("That run", "那次执行", "那次執行"),
    "decided": (
        "{what} · {time} · {place} · c continue",
        "{what} · {time} · {place} · c 继续",
        "{what} · {time} · {place} · c 繼續",
    ),
    "this_terminal": ("this terminal", "本终端", "本終端機"),
    "timeline": ("timeline", "时间线", "時間線"),
    "looks_only": (
        "Looking only: {requests} model requests at most, proven readers and `recovery`. Nothing else runs.",
        "只查看：最多 {requests} 次模型请求，只用已证实的读取工具和 recovery，不执行其他操作。",
        "只查看：最多 {requests} 次模型請求，只用已證實的讀取工具和 recovery，不執行其他操作。",
    ),
    "look_later": (
        "A turn is running; ask the model to look when it has ended.",
        "本轮仍在进行，结束后再让模型去查看。",
        "本輪仍在進行，結束後再讓模型去查看。",
    ),
    "opinion": (
        "{n} of {all} sentences name no call of this turn: they are opinion.",
        "{all} 句中有 {n} 句没有指明本轮的调用，仅为意见。",
        "{all} 句中有 {n} 句沒有指明本輪的呼叫，僅為意見。",
    ),
    "lane_model": ("model", "模型", "模型"),
    "lane_waiting": ("waiting for you", "等待你", "等待你"),
    "lane_provider": ("provider", "服务商", "服務商"),
    "nothing_ran": ("Nothing has run here yet.", "这里还没有执行过任何操作。", "這裡還沒有執行過任何操作。"),
    "timeline_head": (
        "{session} · {start} to {end}",
        "{session} · {start} 至 {end}",
        "{session} · {start} 至 {end}",
    ),
    "timeline_death": (
        "┊ the process died at {time}; the next one came after {length}",
        "┊ 进程在 {time} 终止，{length} 后由下一个接续",
        "┊ 行程在 {time} 終止，{length} 後由下一個接續",
    ),
    "strip_died": ("the process died at {time}", "进程在 {time} 终止", "行程在 {time} 終止"),
    "picture_about": (
        "One bar per call, left to right in time; {open} without a right end may have happened.",
        "每次调用一条，按时间从左到右；{open} 条没有右端，可能已发生。",
        "每次呼叫一條，按時間從左到右；{open} 條沒有右端，可能已發生。",
    ),
    "picture_strip": (
        "Run of {session}: {calls} calls",
        "{session} 的运行：{calls} 次调用",
        "{session} 的執行：{calls} 次呼叫",
    ),
    "help": ("help", "帮助", "說明"),
    "look_further": ("look further", "进一步检查", "進一步檢查"),
    "type_word": (
        "Type {word} to decide: {label}",
        "输入 {word} 以决定：{label}",
        "輸入 {word} 以決定：{label}",
    ),
    "type_code": ("Then type the code {code}", "再输入代码 {code}", "再輸入代碼 {code}"),
    "ended_without_word": (
        "surefoot ended in the middle of its work; what it had recorded is kept.",
        "surefoot 在工作途中结束；已记录的内容都保留着。",
        "surefoot 在工作途中結束；已記錄的內容都保留著。",
    ),
    "proven_instead": (
        "Nobody decided it: {verifier} proved that it happened ({summary}).",
        "没有人作过决定：{verifier} 证明它已经发生（{summary}）。",
        "沒有人作過決定：{verifier} 證明它已經發生（{summary}）。",
    ),
    "nothing_decided": ("Nothing was decided.", "没有作出任何决定。", "沒有作出任何決定。"),
    "no_session": ("There is no session here yet.", "这里还没有会话。", "這裡還沒有工作階段。"),
    "nothing_said": (
        "Nothing was said in this chat yet.",
        "这次对话里还没有说过话。",
        "這次對話裡還沒有說過話。",
    ),
    "nothing_open": ("Nothing is open.", "没有未决的调用。", "沒有未決的呼叫。"),
    "parked_words": (
        "Kept until this turn ends: {text}",
        "已保留到本轮结束：{text}",
        "已保留到本輪結束：{text}",
    ),
    "offered_prompt": ("your words, kept:", "你的话已保留：", "你的話已保留："),
    "background": (
        "{command} · pid {pid} · {age} · log {log} · stop: {stop}",
        "{command} · 进程 {pid} · {age} · 日志 {log} · 停止：{stop}",
        "{command} · 行程 {pid} · {age} · 記錄 {log} · 停止：{stop}",
    ),
    "head_background": ("in the background:", "在后台运行：", "在背景執行："),
    "log_tail": ("log {log}", "日志 {log}", "日誌 {log}"),
    "survivor": (
        "{command} of {attempt} still runs, pid {pid}, log {log}",
        "{attempt} 的 {command} 仍在运行，进程 {pid}，日志 {log}",
        "{attempt} 的 {command} 仍在執行，行程 {pid}，記錄 {log}",
    ),
    "way_out": (
        "Blocked by {attempt}, which may have reached {reach}. Reading works. To decide: {command}",
        "被 {attempt} 拦住，它可能已到达 {reach}。读取照常。决定请用：{command}",
        "被 {attempt} 攔住，它可能已到達 {reach}。讀取照常。決定請用：{command}",
    ),
    "ledger_unreadable": (
        "This project's ledger cannot be read: {reason}. It is kept as it is; no session starts here.",
        "无法读取本项目的账本：{reason}。账本保持原样，这里不会开始任何会话。",
        "無法讀取本專案的帳本：{reason}。帳本保持原樣，這裡不會開始任何工作階段。",
    ),
    "session_lost": ("known to the witness only", "只有见证文件知道它", "只有見證檔知道它"),
    "words_dropped": (
        "Words, arguments and results were dropped. A line for each call that wrote is left: "
        "surefoot recover list --all",
        "内容、参数和结果已清除。每次写入的调用仍留下一行：surefoot recover list --all",
        "內容、參數和結果已清除。每次寫入的呼叫仍留下一行：surefoot recover list --all",
    ),
    "session_dropped": ("dropped", "已清除", "已清除"),
    "session_unreadable": ("unreadable", "无法读取", "無法讀取"),
    "held": (
        "The session is open elsewhere: {host}, process {pid}, for {age}. Its end would be known {how}.",
        "该会话已在别处打开：{host}，进程 {pid}，已 {age}。它结束后会{how}知道。",
        "該工作階段已在別處開啟：{host}，行程 {pid}，已 {age}。它結束後會{how}知道。",
    ),
    "held_at_once": ("at once", "立刻", "立刻"),
    "held_lease": (
        "when its lease ends, in 10 min at most",
        "在租约到期时（最多 10 分钟）",
        "在租約到期時（最多 10 分鐘）",
    ),
    "held_ways": (
        "Read: surefoot session show {ref}. Wait: --wait SECONDS. Take over at a terminal: --take-over.",
        "读取：surefoot session show {ref}。等待：--wait SECONDS。在终端接管：--take-over。",
        "讀取：surefoot session show {ref}。等待：--wait SECONDS。在終端機接管：--take-over。",
    ),
    "small_model_reads": (
        "the local model reads; its first words take a while",
        "本地模型正在阅读，第一个词需要等一会儿",
        "本機模型正在閱讀，第一個詞需要等一會兒",
    ),
    "small_model_began": (
        "first words after {seconds} s",
        "{seconds} 秒后开始回答",
        "{seconds} 秒後開始回答",
    ),
    "class_read_only": ("it only reads", "只读取", "只讀取"),
    "class_idempotent_write": (
        "it writes; the same again changes nothing more",
        "会写入，重复同样的写入不再改变什么",
        "會寫入，重複同樣的寫入不再改變什麼",
    ),
    "class_non_idempotent": (
        "each run has an effect of its own",
        "每次执行都有自己的影响",
        "每次執行都有自己的影響",
    ),
    "class_unknown": ("nothing is known of its effect", "影响未知", "影響未知"),
    "permit_place": (
        "reach {reach} · in {directory}",
        "范围 {reach} · 目录 {directory}",
        "範圍 {reach} · 目錄 {directory}",
    ),
    "permit_choices": (
        "y once · a always this in this session · n no, or type what to do instead; then Enter",
        "y 仅此一次 · a 本会话总是允许 · n 不允许，或写下该怎么做；然后按 Enter",
        "y 僅此一次 · a 本工作階段一律允許 · n 不允許，或寫下該怎麼做；然後按 Enter",
    ),
    "permit_hint": ("y once · a always · n no", "y 一次 · a 总是 · n 不", "y 一次 · a 一律 · n 不"),
    "more_lines": ("… {n} more lines", "… 还有 {n} 行", "… 還有 {n} 行"),
    "chat_opens": (
        "surefoot · {model} · {directory} · mode {mode} · barrier {barrier}",
        "surefoot · {model} · {directory} · 模式 {mode} · 屏障 {barrier}",
        "surefoot · {model} · {directory} · 模式 {mode} · 屏障 {barrier}",
    ),
    "chat_help": (
        "? keys · /help commands · Ctrl+D leave",
        "? 按键 · /help 命令 · Ctrl+D 离开",
        "? 按鍵 · /help 命令 · Ctrl+D 離開",
    ),
    "how_to_go_on": (
        "/continue goes on from here; other words go on with them.",
        "/continue 从这里继续；输入其他内容则带着它继续。",
        "/continue 從這裡繼續；輸入其他內容則帶著它繼續。",
    ),
    "model_wait": (
        "{code}: {cause} Asking again in {seconds} s, request {number}.",
        "{code}：{cause} {seconds} 秒后再次询问，第 {number} 次请求。",
        "{code}：{cause} {seconds} 秒後再次詢問，第 {number} 次請求。",
    ),
    "card_keys": (
        "A letter decides when it stands alone for a moment; j and k move; Esc leaves everything as it is.",
        "单独按下的字母稍后即作决定；j 和 k 切换；Esc 保持一切不变。",
        "單獨按下的字母稍後即作決定；j 和 k 切換；Esc 保持一切不變。",
    ),
    "model_waits": (
        "the model answers · {seconds} s",
        "模型正在回答 · {seconds} 秒",
        "模型正在回答 · {seconds} 秒",
    ),
    "call_runs": ("{what} · {seconds} s", "{what} · {seconds} 秒", "{what} · {seconds} 秒"),
    "esc_stops": ("Esc stops", "Esc 停止", "Esc 停止"),
    "head_sessions": (
        "session|open|changed|calls|model|name or first words|directory",
        "会话|未决|更新|调用|模型|名称或开头的话|目录",
        "工作階段|未決|更新|呼叫|模型|名稱或開頭的話|目錄",
    ),
    "head_calls": (
        "|call|what is known|started|class|reach|what",
        "|调用|已知情况|开始|类别|范围|内容",
        "|呼叫|已知情況|開始|類別|範圍|內容",
    ),
    "head_tools": (
        "tool|rule|class|reach|verifier|reason|what it does",
        "工具|规则|类别|范围|核实|理由|作用",
        "工具|規則|類別|範圍|核實|理由|作用",
    ),
    "head_models": ("|model|wire|contract|url", "|模型|协议|契约|地址", "|模型|協定|契約|位址"),
    "head_keys": ("endpoint|key|where", "端点|密钥|来源", "端點|金鑰|來源"),
    "head_checks": ("status|check|what was found", "状态|检查|结果", "狀態|檢查|結果"),
    "turn_failed": (
        "this turn ended without an answer: {reason}",
        "这一轮没有得到回答：{reason}",
        "這一輪沒有得到回答：{reason}",
    ),
    "turn_timed_out": ("the time of its run was over", "这次运行的时间已到", "這次執行的時間已到"),
    "turn_cancelled": ("this turn was stopped", "这一轮被停止", "這一輪被停止"),
    "turn_open": (
        "the process went away here; a resume goes on from this point",
        "进程在此处消失，恢复后将从这里继续",
        "行程在此處消失，恢復後將從這裡繼續",
    ),
    "nobody_allowed": (
        "{tools} did not run: nobody to ask. To allow it: {flags}",
        "{tools} 未执行：没有人可以询问。要允许它：{flags}",
        "{tools} 未執行：沒有人可以詢問。要允許它：{flags}",
    ),
    "end_question_unanswered": (
        "A question could not be put to anybody.",
        "有一个问题没有人可以回答。",
        "有一個問題沒有人可以回答。",
    ),
    "end_outcome_unknown": (
        "{n} may have happened and nobody has decided.",
        "{n} 次调用可能已发生，还没有人决定。",
        "{n} 次呼叫可能已發生，還沒有人決定。",
    ),
    "end_during_execution": ("The run failed: {reason}", "运行失败：{reason}", "執行失敗：{reason}"),
    "end_max_turns": ("The limit of turns was reached.", "已达到轮数上限。", "已達到輪數上限。"),
    "end_max_budget_usd": ("The money limit was reached.", "已达到费用上限。", "已達到費用上限。"),
    "end_timeout": ("The time of this run is over.", "这次运行的时间已到。", "這次執行的時間已到。"),
    "end_credentials": (
        "The key is missing or refused, or its quota is spent: {reason}",
        "密钥缺失、被拒或额度用完：{reason}",
        "金鑰缺失、被拒或額度用完：{reason}",
    ),
    "end_provider_refused": (
        "The provider refused the replayed history: {reason}",
        "服务商拒绝了重放的历史：{reason}",
        "服務商拒絕了重送的歷史：{reason}",
    ),
    "end_session_held": ("{reason}", "{reason}", "{reason}"),
    "end_interrupted": ("Stopped by a signal.", "已被信号停止。", "已被訊號停止。"),
    "parked_replaces": (
        "It takes the place of an earlier press ({word}) for this call.",
        "它取代了此前对该调用的决定（{word}）。",
        "它取代了此前對該呼叫的決定（{word}）。",
    ),
    "retry_began": (
        "{attempt} began again under its old key.",
        "{attempt} 已用原来的键重新开始。",
        "{attempt} 已用原來的鍵重新開始。",
    ),
    **LEFT,
    "end_next": ("next: {command}", "下一步：{command}", "下一步：{command}"),
}
