"""The words of what came after a start in three languages, as data. Pure.

Owns: how a call that is settled or decided is told on its card, how a living process and the choices about it are
told (UX-78), what a session's dead owners were in (UX-161), that a live one does not answer. Does not own: the other
sentences (`words_table`, which takes these in).
"""

from __future__ import annotations

from collections.abc import Mapping

LEFT: Mapping[str, tuple[str, str, str]] = {
    "known_start": ("Started {time}.", "{time} 开始。", "{time} 開始。"),
    "known_since": ("Since then: {what}.", "之后：{what}。", "之後：{what}。"),
    "still_running": (
        "still running · process {pid} · {age}",
        "仍在运行 · 进程 {pid} · {age}",
        "仍在執行 · 行程 {pid} · {age}",
    ),
    "choice_adopt": ("attach", "接上", "接上"),
    "choice_kill": ("stop it", "停止它", "停止它"),
    "choice_leave": ("leave it", "保留它", "保留它"),
    "owner_waited_for": (
        "Waiting for process {pid}, which owns this session.",
        "正在等待拥有此会话的进程 {pid}。",
        "正在等待擁有此工作階段的行程 {pid}。",
    ),
    "owner_stopped": (
        "Process {pid}, which owns this session, is stopped and answers nothing. Continue it (fg, or kill -CONT {pid})"
        " or end it; once it has died the session is free.",
        "拥有此会话的进程 {pid} 已暂停，不会回答。请让它继续（fg，或 kill -CONT {pid}）或结束它；它终止后会话即空闲。",
        "擁有此工作階段的行程 {pid} 已暫停，不會回答。請讓它繼續（fg，或 kill -CONT {pid}）或結束它；"
        "它終止後工作階段即空閒。",
    ),
    "owner_silent": (
        "Process {pid}, which owns this session, does not answer. End it if it hangs; once it has died the session is"
        " free.",
        "拥有此会话的进程 {pid} 没有回答。若它已挂起，请结束它；它终止后会话即空闲。",
        "擁有此工作階段的行程 {pid} 沒有回答。若它已停住，請結束它；它終止後工作階段即空閒。",
    ),
    "press_unanswered": (
        "The press was handed over and not answered. Look whether it was recorded before you press again.",
        "操作已交出但没有得到回答。再次操作之前，请先查看它是否已被记录。",
        "操作已交出但沒有得到回答。再次操作之前，請先查看它是否已被記錄。",
    ),
    "died_in": (
        "  died during: {calls}",
        "  终止时正在执行：{calls}",
        "  終止時正在執行：{calls}",
    ),
    "died_in_none": (
        "  died while no call ran",
        "  终止时没有调用在执行",
        "  終止時沒有呼叫在執行",
    ),
    "process_adopt": (
        "The processes of {attempt} have ended, and what their record says is written.",
        "{attempt} 的进程已结束，其记录所述已写入。",
        "{attempt} 的行程已結束，其記錄所述已寫入。",
    ),
    "process_kill": (
        "The processes of {attempt} are gone. That says nothing of what the call did before.",
        "{attempt} 的进程已不在。这并不说明该调用之前做过什么。",
        "{attempt} 的行程已不在。這並不說明該呼叫之前做過什麼。",
    ),
    "process_adopt_open": (
        "The processes of {attempt} have ended. No record settles the call; it stays open.",
        "{attempt} 的进程已结束。没有记录能了结该调用，它仍未决。",
        "{attempt} 的行程已結束。沒有記錄能了結該呼叫，它仍未決。",
    ),
    "process_adopt_left": (
        "The command of {attempt} has ended; something that it started still runs.",
        "{attempt} 的命令已结束；它启动的某些进程仍在运行。",
        "{attempt} 的命令已結束；它啟動的某些行程仍在執行。",
    ),
    "process_kill_unproven": (
        "What was seen of the processes of {attempt} is gone; that nothing else of them is left is not proven. That"
        " says nothing of what the call did before.",
        "{attempt} 可见的进程已不在；无法证明没有其他进程残留。这并不说明该调用之前做过什么。",
        "{attempt} 可見的行程已不在；無法證明沒有其他行程殘留。這並不說明該呼叫之前做過什麼。",
    ),
    "process_leave": (
        "The processes of {attempt} go on; it is noted that you know of them.",
        "{attempt} 的进程继续运行；已记下你知道此事。",
        "{attempt} 的行程繼續執行；已記下你知道此事。",
    ),
    "process_followed": (
        "The session follows the processes of {attempt} to their end.",
        "会话会跟踪 {attempt} 的进程直到结束。",
        "工作階段會追蹤 {attempt} 的行程直到結束。",
    ),
    "process_not_gone": (
        "The processes of {attempt} are not proven gone; still seen: {pids}.",
        "无法证明 {attempt} 的进程已不在；仍可见：{pids}。",
        "無法證明 {attempt} 的行程已不在；仍可見：{pids}。",
    ),
}
"""Key → texts."""
