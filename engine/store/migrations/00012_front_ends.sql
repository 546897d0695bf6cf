-- +goose Up

-- Each state of the session's run is logged.
ALTER TABLE sessions ADD COLUMN debug BOOLEAN NOT NULL DEFAULT FALSE;

-- The one file or folder that a call changes or reads; empty: none.
ALTER TABLE tool_calls ADD COLUMN affected_path TEXT NOT NULL DEFAULT '';

-- For people who look into the file, as the three views of the first migration.
CREATE VIEW agent_sessions AS
SELECT id, agent, person, upper(status) AS status, model, tokens, version, NULLIF(request, '') AS waiting_on,
    NULLIF(tool, '') AS tool, debug,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000000.0, 'unixepoch') AS started,
    strftime('%Y-%m-%dT%H:%M:%fZ', changed_at / 1000000.0, 'unixepoch') AS changed,
    CASE WHEN ended_at > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1000000.0, 'unixepoch') END AS ended
FROM sessions;
