-- +goose Up

-- Every daemon that uses the database. Each of its writes renews its row in the statement that takes its turn in the table writer.
CREATE TABLE daemons (
    id    TEXT COLLATE "C" PRIMARY KEY, -- one opening of a daemon
    place TEXT COLLATE "C" NOT NULL, -- where it runs, for people
    until TIMESTAMPTZ NOT NULL, -- when it counts as gone if it stays silent
    wrote BIGINT NOT NULL -- version of its last write
) WITH (fillfactor = 10);

-- What only one daemon does at a time, and which.
CREATE TABLE leases (
    name   TEXT COLLATE "C" PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL
);

ALTER TABLE writer DROP COLUMN holder, DROP COLUMN place, DROP COLUMN until;
