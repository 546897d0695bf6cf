-- +goose Up

-- Whose an unknown account is said to be, until somebody else confirms it; person is empty: nobody's.
ALTER TABLE strangers ADD COLUMN alias TEXT NOT NULL DEFAULT '';
ALTER TABLE strangers ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE strangers ADD COLUMN proposed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE strangers ADD COLUMN proposed_from TEXT NOT NULL DEFAULT ''; -- their account
ALTER TABLE strangers ADD COLUMN proposed_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE strangers ADD COLUMN mac BLOB NOT NULL DEFAULT x'';
