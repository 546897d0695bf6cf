-- +goose Up

-- The entries of how requests ended: one that ended and waits according to its row was put back.
CREATE INDEX audit_settled ON audit (request) WHERE type = 'REQUEST_SETTLED';
