-- +goose Up

-- Which folder the working directory was, where daycared itself holds it: another may have its name later.
ALTER TABLE requests ADD COLUMN folder TEXT NOT NULL DEFAULT '';
