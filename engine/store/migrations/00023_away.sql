-- +goose Up

-- People who do not answer for a while: others are asked at once where a route says who.
CREATE TABLE away (
    person   TEXT    PRIMARY KEY,
    until_at INTEGER NOT NULL,
    to_name  TEXT    NOT NULL, -- who is asked instead where they may decide, or empty
    at       INTEGER NOT NULL,
    via      TEXT    NOT NULL,
    mac      BLOB    NOT NULL
) WITHOUT ROWID;
