-- +goose Up

-- When the channel says that a card was sent, by its own clock, with which it dates what people write; 0: it did not say.
ALTER TABLE copies ADD COLUMN dated INTEGER NOT NULL DEFAULT 0;
