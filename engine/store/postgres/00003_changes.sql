-- +goose Up

-- What each of the last commits changed of what other daemons may have in memory: ids of requests, and the words of what else. Where a
-- row is missing, because PostgreSQL emptied the table after a crash, say, they read all of it again.
CREATE UNLOGGED TABLE changes (
    version BIGINT PRIMARY KEY, -- of the table writer
    what    TEXT COLLATE "C" NOT NULL
);
