-- +goose Up

-- By which settings each daemon goes, as a hash: they should be the same.
ALTER TABLE daemons ADD COLUMN settings TEXT COLLATE "C" NOT NULL DEFAULT '';
