-- +goose Up

-- The people who have an inbox open at each daemon: the names, one in each line.
ALTER TABLE daemons ADD COLUMN inboxes TEXT COLLATE "C" NOT NULL DEFAULT '';
