-- Every statement of the SQLite engine, by name.

-- name: append
-- Epoch and position are decided inside the statement; a stale epoch or a taken position is zero rows: then the
-- epoch to be stored is null, which no row may have. A SELECT in place of VALUES would first copy the row into a
-- table of its own, because it reads the one that is written.
INSERT OR IGNORE INTO entries (key, epoch, at_ms, kind, head, salt, payload)
VALUES (
  ?1,
  (SELECT epoch FROM sessions WHERE session_no = ?1 >> 40 AND epoch = ?2
   AND coalesce((SELECT key FROM entries WHERE key >= (?1 >> 40) << 40 AND key < ((?1 >> 40) + 1) << 40
                 ORDER BY key DESC LIMIT 1), (?1 >> 40) << 40) = ?1 - 1),
  ?3, ?4, ?5, ?6, ?7)

-- name: session_by_id
SELECT session_no, session_id, epoch, owner, since_ms, lease_ms, lease_boot_ms, lease_boot_id, created_ms
FROM sessions WHERE session_id = ?1

-- name: sessions
SELECT session_no, session_id, epoch, owner, since_ms, lease_ms, lease_boot_ms, lease_boot_id, created_ms
FROM sessions ORDER BY session_no

-- name: epoch_of
SELECT epoch FROM sessions WHERE session_no = ?1

-- name: highest_session
SELECT coalesce(max(session_no), 0) FROM sessions

-- name: create_session
INSERT INTO sessions (session_no, session_id, epoch, owner, since_ms, lease_ms, lease_boot_ms, lease_boot_id,
                      created_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?5)

-- name: own
-- Of two that claim at once, the second finds another epoch than it saw, and changes zero rows.
UPDATE sessions SET epoch = ?3, owner = ?4, since_ms = ?5, lease_ms = ?6, lease_boot_ms = ?7, lease_boot_id = ?8
WHERE session_no = ?1 AND epoch = ?2

-- name: renew
UPDATE sessions SET lease_ms = max(lease_ms, ?3), lease_boot_ms = max(lease_boot_ms, ?4)
WHERE session_no = ?1 AND epoch = ?2

-- name: release
UPDATE sessions SET owner = NULL, lease_ms = 0, lease_boot_ms = 0 WHERE session_no = ?1 AND epoch = ?2

-- name: last_entry
SELECT key, head FROM entries WHERE key > ?1 << 40 AND key < (?1 + 1) << 40 ORDER BY key DESC LIMIT 1

-- name: head_at
SELECT head FROM entries WHERE key = ?1

-- name: entries_after
SELECT key, epoch, at_ms, kind, payload, head FROM entries
WHERE key > ?1 AND key < ((?1 >> 40) + 1) << 40 ORDER BY key LIMIT ?2

-- name: entries_of_kinds
-- Rows of other kinds are passed over with their payloads unread.
SELECT key, epoch, at_ms, kind, payload, head FROM entries
WHERE key > ?1 AND key < ((?1 >> 40) + 1) << 40 AND instr(?3, ' ' || kind || ' ') ORDER BY key LIMIT ?2

-- name: chain_after
-- Payloads as bytes, because the chain is over bytes.
SELECT key, epoch, at_ms, kind, head, salt, CAST(payload AS BLOB), digest FROM entries
WHERE key > ?1 AND key < ((?1 >> 40) + 1) << 40 ORDER BY key

-- name: chain_upto
SELECT key, epoch, at_ms, kind, head, salt, CAST(payload AS BLOB), digest FROM entries
WHERE key > ?1 AND key <= ?2 AND key < ((?1 >> 40) + 1) << 40 ORDER BY key

-- name: listing_of
SELECT upto, head, receipts, name, directory, model, changed_ms, calls, open_calls, marks, checked
FROM listing WHERE session_no = ?1

-- name: receipts_of
-- The places come from the index and are sorted before the rows are read: else every receipt goes through the sorter.
SELECT attempt_id, call_id, parent_id, receipt, checked
FROM receipts WHERE place IN (SELECT place FROM receipts WHERE session_no = ?1) ORDER BY place

-- name: attempts_of
-- The index alone holds both.
SELECT place, attempt_id FROM receipts WHERE session_no = ?1

-- name: receipts_named
SELECT place, attempt_id, call_id, parent_id, receipt, checked
FROM receipts WHERE session_no = ?1 AND attempt_id IN (SELECT value FROM json_each(?2))

-- name: forget_receipts
DELETE FROM receipts WHERE session_no = ?1

-- name: forget_listing
DELETE FROM listing WHERE session_no = ?1

-- name: count_receipts
SELECT count(*) FROM receipts WHERE session_no = ?1

-- name: put_receipt
INSERT INTO receipts (session_no, attempt_id, call_id, parent_id, receipt, checked)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (session_no, attempt_id) DO UPDATE SET receipt = ?5, checked = ?6

-- name: put_listing
INSERT INTO listing (session_no, upto, head, receipts, name, directory, model, changed_ms, calls, open_calls,
                     marks, checked)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (session_no) DO UPDATE
SET upto = ?2, head = ?3, receipts = ?4, name = ?5, directory = ?6, model = ?7, changed_ms = ?8, calls = ?9,
    open_calls = ?10, marks = ?11, checked = ?12

-- name: probe
UPDATE probe SET count = count + 1 WHERE one = 1

-- name: payloads_upto
-- The payloads of a session that a drop takes, oldest first, as bytes because the chain is over bytes.
SELECT key, salt, CAST(payload AS BLOB) FROM entries
WHERE key > ?1 AND key <= ?2 AND payload IS NOT NULL AND kind NOT IN ('session.opened', 'session.named')
ORDER BY key LIMIT ?3

-- name: count_payloads
-- Those of a session that a whole drop leaves no more of; what is left of its calls is no such payload.
SELECT count(*) FROM entries
WHERE key > ?1 << 40 AND key < (?1 + 1) << 40 AND payload IS NOT NULL
  AND kind NOT IN ('session.opened', 'session.named', 'session.dropped')

-- name: drop_payload
-- Fenced inside the statement; the digest goes where payload and salt were, so that the chain still verifies.
UPDATE entries SET payload = NULL, salt = NULL, digest = ?3
WHERE key = ?1 AND payload IS NOT NULL AND (SELECT epoch FROM sessions WHERE session_no = ?1 >> 40) = ?2

-- name: payloads
-- Every payload of the ledger behind a key, for whoever looks which blobs are named.
SELECT key, payload FROM entries WHERE key > ?1 AND payload IS NOT NULL ORDER BY key LIMIT ?2
