-- +goose Up

-- A store that was put back from an older copy begins a new life: what it knows of itself for that. The file beside the
-- store, the mark, says how far the store has come.
ALTER TABLE meta ADD COLUMN opens INTEGER NOT NULL DEFAULT 0; -- how often the store was opened
ALTER TABLE meta ADD COLUMN marked BOOLEAN NOT NULL DEFAULT FALSE; -- a mark was written in this life
ALTER TABLE meta ADD COLUMN answered TEXT NOT NULL DEFAULT ''; -- the mark that the newest life went back behind
ALTER TABLE meta ADD COLUMN restored_at INTEGER NOT NULL DEFAULT 0; -- when the newest life began; 0: it is the first
ALTER TABLE meta ADD COLUMN numbers_above INTEGER NOT NULL DEFAULT 0; -- new requests have greater numbers

-- What opens nothing, since the store was restored, until the operator reinstates it.
ALTER TABLE grants ADD COLUMN suspended_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN suspended_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pairings ADD COLUMN suspended_at INTEGER NOT NULL DEFAULT 0;
