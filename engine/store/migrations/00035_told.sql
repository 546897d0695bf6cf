-- +goose Up

-- The title of the asking session, and what it was told to do last, as the asking program says.
ALTER TABLE requests ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN prompt TEXT NOT NULL DEFAULT '';
