-- +goose Up

-- What a caller has a person told, in its own words: about which agent and session, by its own word.
ALTER TABLE notices ADD COLUMN agent   TEXT    NOT NULL DEFAULT '';
ALTER TABLE notices ADD COLUMN session TEXT    NOT NULL DEFAULT '';
ALTER TABLE notices ADD COLUMN title   TEXT    NOT NULL DEFAULT '';
ALTER TABLE notices ADD COLUMN words   TEXT    NOT NULL DEFAULT '';
ALTER TABLE notices ADD COLUMN silent  BOOLEAN NOT NULL DEFAULT FALSE;
