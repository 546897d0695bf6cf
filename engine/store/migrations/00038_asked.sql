-- +goose Up
-- What is pending by whom it asks: a list of one person's reads nobody else's, and costs as many pages of the log as before.
DROP INDEX requests_pending;
CREATE INDEX requests_pending ON requests (asked, number, due_at) WHERE state = 'pending';

-- For pages of what is granted.
CREATE INDEX grants_open_ids ON grants (id) WHERE revoked_at = 0 AND ended_at = 0;
