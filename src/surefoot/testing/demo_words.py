"""What the demo says beside the card, in three languages, as data. Pure.

Owns: the sentences of `surefoot demo`. Does not own: what a card says (`surfaces.words`), what
the played model says (`demo_agent`), the choice of language (`surfaces.tongues`).
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.surfaces.words import in_language
from surefoot.surfaces.words_table import Texts

SENTENCES: Mapping[str, Texts] = {
    "title": (
        "An agent pays an invoice, is killed, and its successor tells the truth.",
        "一个代理支付一张发票，被杀死，它的继任者如实说明。",
        "一個代理支付一張發票，被殺死，它的繼任者如實說明。",
    ),
    "starts": (
        "An agent starts (process {pid}). Its task: pay {label}, a POST over HTTP.",
        "一个代理启动（进程 {pid}）。它的任务：支付 {label}，一个 HTTP POST。",
        "一個代理啟動（行程 {pid}）。它的任務：支付 {label}，一個 HTTP POST。",
    ),
    "counted": (
        "The receiver has counted {count} and is about to answer.",
        "接收方已计数 {count}，正要回复。",
        "接收方已計數 {count}，正要回覆。",
    ),
    "ready": (
        "The call is ready. Its start is not written yet, so nothing was sent.",
        "调用已就绪。它的开始尚未写入，所以什么都没有发送。",
        "呼叫已就緒。它的開始尚未寫入，所以什麼都沒有送出。",
    ),
    "answered": (
        "The receiver has counted 1 and answered; the result is in the ledger.",
        "接收方已计数 1 并已回复；结果在账本中。",
        "接收方已計數 1 並已回覆；結果在帳本中。",
    ),
    "killed": ("kill -9 {pid}. {how}", "kill -9 {pid}。{how}", "kill -9 {pid}。{how}"),
    "killed_before": (
        "The agent died before it began to pay.",
        "代理在开始支付之前死亡。",
        "代理在開始支付之前死亡。",
    ),
    "killed_during": (
        "The agent died before any result was written.",
        "代理在写入任何结果之前死亡。",
        "代理在寫入任何結果之前死亡。",
    ),
    "killed_after": (
        "The agent died after the result was written.",
        "代理在写入结果之后死亡。",
        "代理在寫入結果之後死亡。",
    ),
    "opens": (
        "surefoot opens the session. Opening runs no tool and sends no request.",
        "surefoot 打开会话。打开不运行任何工具，也不发送任何请求。",
        "surefoot 開啟工作階段。開啟不執行任何工具，也不送出任何請求。",
    ),
    "person_decides": (
        "A person decides, in a terminal: {command}",
        "由人在终端中决定：{command}",
        "由人在終端機中決定：{command}",
    ),
    "not_kept": (
        "This folder is gone in a moment; `surefoot demo --keep` keeps it, and in a terminal the demo asks you.",
        "这个文件夹马上就会消失；`surefoot demo --keep` 会保留它，在终端中演示会问您。",
        "這個資料夾馬上就會消失；`surefoot demo --keep` 會保留它，在終端機中示範會問您。",
    ),
    "both_counts": (
        "The receiver counted {count}; a blind retry made {other}.",
        "接收方计数 {count}；盲目重试造成 {other}。",
        "接收方計數 {count}；盲目重試造成 {other}。",
    ),
    "undecided": (
        "Nothing was decided; that is a fine answer too. The call stays open.",
        "没有作出决定；这也是一个好的回答。调用仍未决定。",
        "沒有作出決定；這也是一個好的回答。呼叫仍未決定。",
    ),
    "continue": ("c continue", "c 继续", "c 繼續"),
    "left": ("Left as it is.", "保持原样。", "保持原樣。"),
    "goes_on": (
        "The agent (a played model) goes on:",
        "代理（一个按剧本的模型）继续：",
        "代理（一個按劇本的模型）繼續：",
    ),
    "beyond_evidence": (
        "This goes beyond the evidence; now type the two characters from the card.",
        "这超出了证据；现在请输入卡片上的两个字符。",
        "這超出了證據；現在請輸入卡片上的兩個字元。",
    ),
    "no_decision": (
        "That key decides nothing. The choices stand on the card; one key alone, after a pause.",
        "这个键不决定任何事。选项在卡片上；停顿之后单独按一个键。",
        "這個鍵不決定任何事。選項在卡片上；停頓之後單獨按一個鍵。",
    ),
    "model_cannot_look": (
        "The model of this demo follows a script and cannot look. You can: press i.",
        "这个演示的模型按剧本行事，不能查看。您可以：按 i。",
        "這個示範的模型按劇本行事，不能查看。您可以：按 i。",
    ),
    "keys": (
        "One letter decides when it stands alone for a moment. Esc leaves everything as it is.",
        "单独按下并稍停的一个字母作出决定。Esc 让一切保持原样。",
        "單獨按下並稍停的一個字母作出決定。Esc 讓一切保持原樣。",
    ),
    "count": ("The receiver counted {count}.", "接收方计数 {count}。", "接收方計數 {count}。"),
    "blind": (
        "A loop without receipts, killed at the same place and started again, made it {count}.",
        "一个没有收据的循环，在同一处被杀死并重新启动，使它成为 {count}。",
        "一個沒有收據的迴圈，在同一處被殺死並重新啟動，使它成為 {count}。",
    ),
    "go_on_with": ("Go on with:", "接下来：", "接下來："),
    "go_on_with_at": ("Go on with ({place}):", "接下来（{place}）：", "接下來（{place}）："),
    "next_doctor": (
        "what is set up here, and what is missing",
        "这里设置了什么，缺少什么",
        "這裡設定了什麼，缺少什麼",
    ),
    "next_chat": (
        "a chat in this folder (needs a model)",
        "在这个文件夹中聊天（需要一个模型）",
        "在這個資料夾中聊天（需要一個模型）",
    ),
    "next_list": (
        "calls of yours that may have happened",
        "您的可能已经发生的调用",
        "您的可能已經發生的呼叫",
    ),
    "kept": ("Kept: {folder}", "已保留：{folder}", "已保留：{folder}"),
    "agent_late": (
        "process {pid} did not get to the moment of the kill",
        "进程 {pid} 没有到达要杀死它的时刻",
        "行程 {pid} 沒有到達要殺死它的時刻",
    ),
    "loop_late": (
        "the plain loop could not post again",
        "普通循环没能再次发送",
        "普通迴圈沒能再次送出",
    ),
    "about": (
        "A killed agent that tells the truth. Needs no key, network or settings.",
        "一个被杀死的代理，仍然如实说明。不需要密钥、网络或设置。",
        "一個被殺死的代理，仍然如實說明。不需要金鑰、網路或設定。",
    ),
    "kill_at": ("when the agent is killed", "何时杀死代理", "何時殺死代理"),
    "screen_reader": (
        "for a screen reader: a labelled line per fact, numbered choices",
        "供屏幕阅读器使用：每个事实一行并带标签，选项带编号",
        "供螢幕閱讀器使用：每個事實一行並帶標籤，選項帶編號",
    ),
    "keep": ("keep the temporary folder", "保留临时文件夹", "保留暫存資料夾"),
    "stopped": ("The demo stopped: {why}.", "演示已停止：{why}。", "示範已停止：{why}。"),
}
"""Places in braces are filled by `told`."""


def told(key: str, language: str, **values: object) -> str:
    """The sentence `key` with its values filled in. Raises KeyError for an unknown key."""
    return in_language(SENTENCES[key], language).format(**values)
