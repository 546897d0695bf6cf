-- +goose Up

-- How many calls a minute policy lets run unasked, where a call is asked about because it is one more; 0: it is not.
ALTER TABLE requests ADD COLUMN beyond INTEGER NOT NULL DEFAULT 0;
