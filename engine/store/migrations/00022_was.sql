-- +goose Up

-- Rows of the file that a call changes, as whoever asks has read them: a JSON array.
ALTER TABLE requests ADD COLUMN was TEXT NOT NULL DEFAULT '[]';
