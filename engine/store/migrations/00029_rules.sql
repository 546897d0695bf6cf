-- +goose Up

-- A rule that a person was shown and gave, as JSON: patterns and a folder; empty: none.
ALTER TABLE votes ADD COLUMN rule TEXT NOT NULL DEFAULT '';
ALTER TABLE grants ADD COLUMN rule TEXT NOT NULL DEFAULT '';
