-- +goose Up
-- When something is to happen to a pending request: the earliest of its deadline, its escalation and its next reminder. One index
-- instead of four, each of which was written to twice for a request.
DROP INDEX requests_deadline;
DROP INDEX requests_escalate;
DROP INDEX requests_remind;
ALTER TABLE requests RENAME COLUMN remind_at TO due_at;
UPDATE requests SET due_at = MIN(deadline, CASE WHEN escalate_at > 0 THEN escalate_at ELSE deadline END,
    CASE WHEN due_at > 0 THEN due_at ELSE deadline END) WHERE state = 'pending';
DROP INDEX requests_pending;
CREATE INDEX requests_pending ON requests (number, due_at) WHERE state = 'pending';
