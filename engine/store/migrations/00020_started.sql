-- +goose Up

-- The entry that a call of an agent's session begins is compared with the session, too.
DROP INDEX audit_sessions;
CREATE INDEX audit_sessions ON audit (actor, seq) WHERE type IN ('SESSION_STATUS', 'SESSION_ENDED', 'TOOL_STARTED', 'TOOL_FINISHED');
