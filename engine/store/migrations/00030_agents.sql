-- +goose Up

-- The entries of agents that ask nothing until somebody resumes them belong to those of what shuts something.
DROP INDEX audit_gates;
CREATE INDEX audit_gates ON audit (request) WHERE type IN ('REQUEST_USED', 'REQUEST_VOIDED', 'GRANT_ADDED', 'GRANT_REVOKED',
    'GRANT_ENDED', 'GRANT_REINSTATED', 'TOKEN_CREATED', 'TOKEN_REVOKED', 'TOKEN_REINSTATED', 'PAIRED', 'UNPAIRED',
    'PAIRING_REINSTATED', 'ACCOUNT_SUSPENDED', 'PERSON_LOCKED', 'PERSON_UNLOCKED', 'UNLOCK_ASKED', 'ALL_STOPPED', 'ALL_RESUMED',
    'STORE_RESTORED', 'AGENT_STOPPED', 'AGENT_MUTED', 'AGENT_RESUMED');
