-- +goose Up

-- The entries of what opened and closed a gate, and of approvals that were used or taken back: a row of earlier that somebody
-- puts back is compared with them.
CREATE INDEX audit_gates ON audit (request) WHERE type IN ('REQUEST_USED', 'REQUEST_VOIDED', 'GRANT_ADDED', 'GRANT_REVOKED',
    'GRANT_ENDED', 'GRANT_REINSTATED', 'TOKEN_CREATED', 'TOKEN_REVOKED', 'TOKEN_REINSTATED', 'PAIRED', 'UNPAIRED',
    'PAIRING_REINSTATED', 'ACCOUNT_SUSPENDED', 'PERSON_LOCKED', 'PERSON_UNLOCKED', 'UNLOCK_ASKED', 'ALL_STOPPED', 'ALL_RESUMED',
    'STORE_RESTORED');
