-- +goose Up

-- The message that lists a request among others for one person; it stays when the request gets a message of its own. Empty: none.
ALTER TABLE copies ADD COLUMN burst TEXT NOT NULL DEFAULT '';
CREATE INDEX copies_burst ON copies (burst) WHERE burst <> '';
