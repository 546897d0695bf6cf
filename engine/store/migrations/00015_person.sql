-- +goose Up

-- Whose agent it is that presents the token, which its seal covers; empty: nobody's in particular. What the table of 14 says is
-- taken over, and the next start seals it where the audit says the same.
ALTER TABLE tokens ADD COLUMN person TEXT NOT NULL DEFAULT '';
UPDATE tokens SET person = (SELECT person FROM owners WHERE owners.name = tokens.name) WHERE name IN (SELECT name FROM owners);
DROP TABLE owners;
