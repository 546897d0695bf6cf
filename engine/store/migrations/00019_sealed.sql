-- +goose Up

-- More rows carry a MAC: sessions of our own agents, timetables, and copies of requests. The seals of requests cover more columns.
ALTER TABLE meta ADD COLUMN seals INTEGER NOT NULL DEFAULT 0; -- which rows and columns are sealed; 0: as before this migration
ALTER TABLE sessions ADD COLUMN audited INTEGER NOT NULL DEFAULT 0; -- the newest entry of the audit when the row was written
ALTER TABLE sessions ADD COLUMN mac BLOB NOT NULL DEFAULT x'';
ALTER TABLE timetables ADD COLUMN mac BLOB NOT NULL DEFAULT x'';
ALTER TABLE copies ADD COLUMN mac BLOB NOT NULL DEFAULT x'';

-- The entries about sessions of agents: a session of earlier that somebody puts back is compared with them.
CREATE INDEX audit_sessions ON audit (actor, seq) WHERE type IN ('SESSION_STATUS', 'SESSION_ENDED', 'TOOL_FINISHED');
