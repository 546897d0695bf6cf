-- +goose Up

-- What the rules of the configuration said of a request when it was asked: a JSON array.
ALTER TABLE requests ADD COLUMN ruled TEXT NOT NULL DEFAULT '[]';
