-- +goose Up

-- The locks and suspensions once more, as JSON, under the seal of this row: a row of them that somebody deletes opens nothing.
ALTER TABLE meta ADD COLUMN shut TEXT NOT NULL DEFAULT ''; -- empty: nothing was said yet
