-- +goose Up

-- When the answer was given that the request's key found before, and no longer does; 0: there was none.
ALTER TABLE requests ADD COLUMN earlier_at INTEGER NOT NULL DEFAULT 0;
