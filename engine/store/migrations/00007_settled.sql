-- +goose Up

-- What a request is about, whatever is said beside it: what was denied twice is not asked again in other words.
ALTER TABLE requests ADD COLUMN action BLOB NOT NULL DEFAULT x'';
DROP INDEX requests_denied;
CREATE INDEX requests_denied ON requests (caller, action, decided_at) WHERE state = 'denied';

-- Who took an approval back that was not used.
ALTER TABLE requests ADD COLUMN voided_by TEXT NOT NULL DEFAULT '';
UPDATE requests SET voided_by = COALESCE(
    (SELECT actor FROM audit WHERE audit.type = 'REQUEST_VOIDED' AND audit.request = requests.id LIMIT 1), '') WHERE void_at > 0;

-- How a request ended that nobody came for is found by the same question.
CREATE INDEX requests_kept ON requests (caller, session, digest, decided_at)
    WHERE state <> 'pending' AND collected_at = 0 AND lapsed_at = 0 AND key = '';
