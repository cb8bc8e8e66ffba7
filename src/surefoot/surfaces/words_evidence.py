"""What a look at the world saw, in the two Chinese languages, by its English text, as data. Pure.

Owns: one row per summary of the verifiers that ship, and per thing that one does not show. Does not own: the looks
(`verifiers`), how a row is found (`phrases`). A verifier of somebody else says its own sentence, which stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

SEEN: Mapping[str, tuple[str, str]] = {
    "{one}: satisfied": ("{one}：与要写入的一致", "{one}：與要寫入的一致"),
    "{one}: unchanged": ("{one}：没有改变", "{one}：沒有改變"),
    "{one}: conflict": ("{one}：是别的内容", "{one}：是別的內容"),
    "{one}: unknown": ("{one}：不明", "{one}：不明"),
    "This call stored no write intent.": ("这次调用没有存下写入意图。", "這次呼叫沒有存下寫入意圖。"),
    "The paths lead elsewhere now.": ("这些路径现在指向别处。", "這些路徑現在指向別處。"),
    "The look took too long.": ("检查用时过长。", "檢查用時過長。"),
    "This file belongs to the ledger and is not opened.": (
        "这个文件属于账本，不会打开。",
        "這個檔案屬於帳本，不會開啟。",
    ),
    "A row with the key is committed.": ("带有该键的行已提交。", "帶有該鍵的列已提交。"),
    "The transaction of the call is committed.": ("这次调用的事务已提交。", "這次呼叫的交易已提交。"),
    "No row with the key is committed.": ("没有带有该键的行被提交。", "沒有帶有該鍵的列被提交。"),
    "No row with the key is committed, and the call's own session is over.": (
        "没有带有该键的行被提交，并且这次调用自己的连接已结束。",
        "沒有帶有該鍵的列被提交，並且這次呼叫自己的連線已結束。",
    ),
    "The database could not be read: {error}.": ("无法读取数据库：{error}。", "無法讀取資料庫：{error}。"),
    "a transaction is being written": ("有事务正在写入", "有交易正在寫入"),
    "The database did not answer in time.": ("数据库没有及时回答。", "資料庫沒有及時回答。"),
    "The remote lists every ref as before; {names} does not hold the commit.": (
        "远程仓库列出的每个引用都和之前一样，{names} 不含该提交。",
        "遠端儲存庫列出的每個參照都和之前一樣，{names} 不含該提交。",
    ),
    "The remote's {names} holds the pushed commit.": (
        "远程仓库的 {names} 含有推送的提交。",
        "遠端儲存庫的 {names} 含有推送的提交。",
    ),
    "The remote held what was to be pushed to {names} before.": (
        "要推送到 {names} 的内容，远程仓库之前就有。",
        "要推送到 {names} 的內容，遠端儲存庫之前就有。",
    ),
    "What the remote held before is not known.": (
        "不知道远程仓库之前有什么。",
        "不知道遠端儲存庫之前有什麼。",
    ),
    "The remote's refs changed since, in another way.": (
        "远程仓库的引用后来以别的方式改变了。",
        "遠端儲存庫的參照後來以別的方式改變了。",
    ),
    "{url} could not be asked.": ("无法询问 {url}。", "無法詢問 {url}。"),
    "the remote is no longer known": ("远程仓库已不在设置中", "遠端儲存庫已不在設定中"),
    "the repository is gone": ("仓库已不存在", "儲存庫已不存在"),
    "Git could not be read.": ("无法读取 git。", "無法讀取 git。"),
    "Head, branch and reflog are as before; no commit was made.": (
        "HEAD、分支和引用日志都和之前一样，没有产生提交。",
        "HEAD、分支和參照日誌都和之前一樣，沒有產生提交。",
    ),
    "Commit {commit} has the recorded tree and message.": (
        "提交 {commit} 的目录树和说明与记录相符。",
        "提交 {commit} 的目錄樹和說明與記錄相符。",
    ),
    "Commit {commit} has the recorded tree and message and follows the recorded head.": (
        "提交 {commit} 的目录树和说明与记录相符，并且接在记录的 HEAD 之后。",
        "提交 {commit} 的目錄樹和說明與記錄相符，並且接在記錄的 HEAD 之後。",
    ),
    "The branch moved since, and no commit fits the recorded tree and message.": (
        "分支后来移动了，没有提交与记录的目录树和说明相符。",
        "分支後來移動了，沒有提交與記錄的目錄樹和說明相符。",
    ),
    "No commit was made, but files were staged since.": (
        "没有产生提交，但后来有文件被暂存。",
        "沒有產生提交，但後來有檔案被暫存。",
    ),
    "{ref} is as before.": ("{ref} 和之前一样。", "{ref} 和之前一樣。"),
    "{ref} named this object before already.": ("{ref} 之前就指向这个对象。", "{ref} 之前就指向這個物件。"),
    "{ref} names the recorded object.": ("{ref} 指向记录的对象。", "{ref} 指向記錄的物件。"),
    "{ref} or the checked out branch changed in another way.": (
        "{ref} 或检出的分支以别的方式改变了。",
        "{ref} 或簽出的分支以別的方式改變了。",
    ),
    "The look-up by key read all its pages and finds none.": (
        "按键查询读完了所有页，没有找到。",
        "按鍵查詢讀完了所有頁，沒有找到。",
    ),
    "The look-up by key lists it ({hits} on page {page}).": (
        "按键查询列出了它（第 {page} 页有 {hits} 条）。",
        "按鍵查詢列出了它（第 {page} 頁有 {hits} 筆）。",
    ),
    "The look-up finds none, and the far side refuses the key from now on.": (
        "查询没有找到，并且远端从现在起拒绝该键。",
        "查詢沒有找到，並且遠端從現在起拒絕該鍵。",
    ),
    "The look-up answered {status}.": ("查询得到的回答是 {status}。", "查詢得到的回答是 {status}。"),
    "The look-up lists what does not hold the key.": (
        "查询列出的内容不含该键。",
        "查詢列出的內容不含該鍵。",
    ),
    "No look-up by key is declared, and nothing was put.": (
        "没有声明按键查询，也没有用 PUT 写入。",
        "沒有宣告按鍵查詢，也沒有用 PUT 寫入。",
    ),
    "What stands there equals what was sent.": ("那里的内容与发送的相同。", "那裡的內容與送出的相同。"),
    "What stands there is not what was sent.": ("那里的内容与发送的不同。", "那裡的內容與送出的不同。"),
    "The far side answered 404, and {status} for another object.": (
        "远端回答 404，对另一个对象回答 {status}。",
        "遠端回答 404，對另一個物件回答 {status}。",
    ),
    "The far side answered 404, which may mean a missing right.": (
        "远端回答 404，可能是因为没有权限。",
        "遠端回答 404，可能是因為沒有權限。",
    ),
    "The far side gave no answer that counts.": ("远端没有给出有效的回答。", "遠端沒有給出有效的回答。"),
    "The address answered {status}.": ("该地址的回答是 {status}。", "該位址的回答是 {status}。"),
    "The command never started: recovery claimed its run before any supervisor did.": (
        "命令没有启动：在监管进程之前，恢复已占用它的运行目录。",
        "命令沒有啟動：在監管行程之前，恢復已佔用它的執行目錄。",
    ),
    "The record of the command says how it ended: {ended}.": (
        "命令的记录写明了它如何结束：{ended}。",
        "命令的記錄寫明了它如何結束：{ended}。",
    ),
    "Nothing can look up what a shell command did. {left}": (
        "无法查明 shell 命令做了什么。{left}",
        "無法查明 shell 命令做了什麼。{left}",
    ),
    "None of its processes is left.": ("它的进程都已不在。", "它的行程都已不在。"),
    "Whether all its processes ended is not proven.": (
        "没有证明它的进程是否都已结束。",
        "沒有證明它的行程是否都已結束。",
    ),
    "The receiver lists no payment with this key.": (
        "接收方没有列出带有该键的付款。",
        "接收方沒有列出帶有該鍵的付款。",
    ),
    "The receiver lists {count} payment with the key of this call.": (
        "接收方列出了 {count} 笔带有这次调用的键的付款。",
        "接收方列出了 {count} 筆帶有這次呼叫的鍵的付款。",
    ),
    "The receiver lists {count} payments with the key of this call.": (
        "接收方列出了 {count} 笔带有这次调用的键的付款。",
        "接收方列出了 {count} 筆帶有這次呼叫的鍵的付款。",
    ),
}
"""What was seen."""

NOT_SHOWN: Mapping[str, tuple[str, str]] = {
    "how far the call came": ("调用进行到了哪一步", "呼叫進行到了哪一步"),
    "that this call made them so": ("是这次调用使它们如此", "是這次呼叫使它們如此"),
    "that the write never happened or cannot come": (
        "写入从未发生或不会再来",
        "寫入從未發生或不會再來",
    ),
    "that a transaction which is still open cannot commit one": (
        "仍未结束的事务不会再提交",
        "仍未結束的交易不會再提交",
    ),
    "that this call put it there": ("是这次调用放在那里的", "是這次呼叫放在那裡的"),
    "that a push which has reached the remote cannot still be taken there": (
        "已到达远程仓库的推送不会再被接受",
        "已到達遠端儲存庫的推送不會再被接受",
    ),
    "whether it was made and taken away again; something was written beside {ref}": (
        "它是否曾被建立又被移除；{ref} 旁边有写入",
        "它是否曾被建立又被移除；{ref} 旁邊有寫入",
    ),
    "that it was made here after the call began": (
        "它是在调用开始之后在这里产生的",
        "它是在呼叫開始之後在這裡產生的",
    ),
    "a commit that was made and taken back, since no reflog is kept here": (
        "产生后又撤回的提交，因为这里没有保留引用日志",
        "產生後又撤回的提交，因為這裡沒有保留參照日誌",
    ),
    "that it is the same one as before; this file system keeps no time of birth": (
        "它就是先前的那一个；此文件系统不保存创建时间",
        "它就是先前的那一個；此檔案系統不保存建立時間",
    ),
    "that the command cannot still commit": ("该命令不会再提交", "該命令不會再提交"),
    "that this call did it; it was so before": (
        "是这次调用做的；之前就是如此",
        "是這次呼叫做的；之前就是如此",
    ),
    "that a request which was sent cannot still take effect, or is only not listed yet": (
        "已发送的请求不会再生效，或只是还没有列出",
        "已送出的請求不會再生效，或只是還沒有列出",
    ),
    "what the command did before": ("该命令之前做了什么", "該命令之前做了什麼"),
    "what the receiver does with it later": ("接收方之后如何处理它", "接收方之後如何處理它"),
}
"""What that does not show."""
