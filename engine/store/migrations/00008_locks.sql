-- +goose Up

-- People whose accounts count for nothing until they are unlocked.
CREATE TABLE locks (
    person    TEXT    PRIMARY KEY,
    accounts  TEXT    NOT NULL, -- that they had, which stay locked whoever the configuration gives them to
    locked_at INTEGER NOT NULL,
    locked_by TEXT    NOT NULL,
    via       TEXT    NOT NULL,
    unlocking TEXT    NOT NULL, -- people who have said that it may end
    mac       BLOB    NOT NULL
) WITHOUT ROWID;
