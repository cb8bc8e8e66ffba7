-- The schema of a surefoot ledger, version 1. Every rule stands in English above the line that keeps it.

-- One row per session. A session's number never changes and is never given to another session,
-- because its entries and its witness record are found by it.
-- An epoch only rises; the code raises it in the statement that changes the owner.
CREATE TABLE sessions (
  session_no   INTEGER PRIMARY KEY CHECK (session_no BETWEEN 1 AND 8388607),
  session_id   TEXT    NOT NULL UNIQUE,
  epoch        INTEGER NOT NULL CHECK (epoch >= 1),
  -- The owner as JSON, or null when nobody owns the session.
  owner        TEXT    CHECK (owner IS NULL OR json_valid(owner)),
  since_ms     INTEGER NOT NULL,
  -- The lease by the wall clock, and by the boot clock of the machine whose boot id stands beside it.
  lease_ms      INTEGER NOT NULL DEFAULT 0,
  lease_boot_ms INTEGER NOT NULL DEFAULT 0,
  lease_boot_id TEXT    NOT NULL DEFAULT '',
  created_ms   INTEGER NOT NULL
) STRICT;

-- The history: the one table on the path of a tool result, one b-tree, no second index, no trigger.
-- The key is the session's number, shifted left by 40 bits, and the entry's position from 1.
CREATE TABLE entries (
  key     INTEGER PRIMARY KEY CHECK (key >= 1099511627777),
  epoch   INTEGER NOT NULL CHECK (epoch >= 1),
  at_ms   INTEGER NOT NULL,
  kind    TEXT    NOT NULL,
  -- The chain after this entry: SHA-256 over the head before it, and over SHA-256(salt, payload).
  head    BLOB    NOT NULL CHECK (length(head) = 32),
  -- Retention may drop payload and salt; then, and only then, their digest stands in their place.
  salt    BLOB,
  payload TEXT,
  digest  BLOB,
  CHECK ((payload IS NULL) = (salt IS NULL) AND (payload IS NULL) = (digest IS NOT NULL))
) STRICT;

-- Derived. What the listing shows, and how far receipts have been folded. May be deleted at any time.
CREATE TABLE listing (
  session_no  INTEGER PRIMARY KEY,
  upto        INTEGER NOT NULL,
  head        BLOB    NOT NULL,
  receipts    INTEGER NOT NULL,
  name        TEXT,
  directory   TEXT    NOT NULL,
  model       TEXT,
  changed_ms  INTEGER NOT NULL,
  calls       INTEGER NOT NULL,
  open_calls  INTEGER NOT NULL,
  -- Which attempts are open, unsettled, resolved, and the counts: what the rows of `receipts` do not say.
  marks       TEXT    NOT NULL,
  checked     INTEGER NOT NULL
) STRICT;

-- Derived. One row per attempt, in order of first appearance. May be deleted at any time.
CREATE TABLE receipts (
  place       INTEGER PRIMARY KEY,
  session_no  INTEGER NOT NULL,
  attempt_id  TEXT    NOT NULL,
  call_id     TEXT    NOT NULL,
  parent_id   TEXT,
  -- CRC-32 over the row, so that a flipped bit in derived data leads to a rebuild and not to a belief.
  checked     INTEGER NOT NULL,
  receipt     TEXT    NOT NULL,
  UNIQUE (session_no, attempt_id)
) STRICT;

-- One row. Its counter is raised to make a commit that says nothing: the one that overwrites
-- frames which a failed commit left behind in the WAL.
CREATE TABLE probe (
  one   INTEGER PRIMARY KEY CHECK (one = 1),
  count INTEGER NOT NULL
) STRICT;
INSERT INTO probe (one, count) VALUES (1, 0);
