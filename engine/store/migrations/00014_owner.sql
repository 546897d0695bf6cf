-- +goose Up

-- Whose agent it is that presents a token of a name.
CREATE TABLE owners (
    name   TEXT NOT NULL PRIMARY KEY,
    person TEXT NOT NULL,
    mac    BLOB NOT NULL
) WITHOUT ROWID;
