-- +goose Up

-- What a clarification came to: whether a default was taken that nobody chose, and of one without a response, why.
DROP VIEW aic_interactions;
CREATE VIEW aic_interactions AS
SELECT number AS id, COALESCE(NULLIF(session, ''), id) AS task_id, message AS conflict_description, choices AS options,
    CASE WHEN answer = 'other' THEN NULLIF(comment, '')
        WHEN answer LIKE 'option!_%' ESCAPE '!' THEN json_extract(choices, '$[' || (CAST(substr(answer, 8) AS INTEGER) - 1) || ']')
    END AS response,
    timed_out, strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000000.0, 'unixepoch') AS timestamp, defaulted, state
FROM requests WHERE kind = 'clarification';
