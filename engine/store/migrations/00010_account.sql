-- +goose Up

-- The account that a vote came from, as the audit names it: one account is never two people's; empty: it was not noted.
ALTER TABLE votes ADD COLUMN account TEXT NOT NULL DEFAULT '';
