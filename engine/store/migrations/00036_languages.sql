-- +goose Up

-- In which language a person's app is, as it said last; the configured one comes first.
CREATE TABLE languages (
    person   TEXT NOT NULL PRIMARY KEY,
    language TEXT NOT NULL
) WITHOUT ROWID;
