-- +goose Up

-- The entries of the audit, without what other rows say: the name of their chain, the id and the digest of their request, and the
-- hash of the entry before. The view audit has them as they were written, and as their hashes cover them.
CREATE TABLE chains (
    number INTEGER PRIMARY KEY,
    name   TEXT    NOT NULL UNIQUE
);
INSERT INTO chains (name) SELECT chain FROM meta;
INSERT INTO chains (name) SELECT DISTINCT chain FROM audit WHERE chain NOT IN (SELECT name FROM chains) ORDER BY chain;

-- What entries need of requests that were deleted, until the entries up to seq are.
CREATE TABLE pruned (
    number INTEGER PRIMARY KEY,
    id     TEXT    NOT NULL,
    digest BLOB    NOT NULL,
    seq    INTEGER NOT NULL
);
CREATE INDEX pruned_seq ON pruned (seq);

CREATE TABLE entries (
    chain   INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    type    TEXT    NOT NULL,
    request         NOT NULL, -- its number if it has a row in requests or pruned, else its id, or nothing
    actor   TEXT    NOT NULL,
    via     TEXT    NOT NULL,
    detail  TEXT    NOT NULL, -- JSON, where the digest of the request is "="
    hash    BLOB    NOT NULL,
    mac     BLOB    NOT NULL,
    prev    BLOB,             -- the hash of the entry before, where that is not here
    PRIMARY KEY (chain, seq)
) WITHOUT ROWID;

INSERT INTO entries
SELECT chains.number, audit.seq, audit.at, audit.type, COALESCE(requests.number, audit.request), audit.actor, audit.via,
    COALESCE(replace(audit.detail, '"digest":"sha256:' || lower(hex(requests.digest)) || '"', '"digest":"="'), audit.detail),
    audit.hash, audit.mac,
    CASE WHEN audit.prev = (SELECT hash FROM audit AS before WHERE before.chain = audit.chain AND before.seq = audit.seq - 1)
        THEN NULL ELSE audit.prev END
FROM audit JOIN chains ON chains.name = audit.chain LEFT JOIN requests ON requests.id = audit.request
ORDER BY audit.chain, audit.seq;

DROP TABLE audit;

CREATE VIEW audit AS
SELECT chains.name AS chain, entries.seq AS seq, entries.at AS at, entries.type AS type,
    COALESCE('' || requests.id, '' || pruned.id,
        CASE typeof(entries.request) WHEN 'integer' THEN '' || entries.request ELSE entries.request END) AS request, entries.actor AS actor, entries.via AS via,
    COALESCE(CASE typeof(entries.detail) WHEN 'text' THEN replace(entries.detail, '"digest":"="',
        '"digest":"sha256:' || lower(hex(COALESCE(requests.digest, pruned.digest))) || '"') END, entries.detail) AS detail,
    COALESCE(entries.prev, (SELECT before.hash FROM entries AS before
        WHERE before.chain = entries.chain AND before.seq = entries.seq - 1), zeroblob(32)) AS prev,
    entries.hash AS hash, entries.mac AS mac
FROM entries JOIN chains ON chains.number = entries.chain
LEFT JOIN requests ON requests.number = CASE typeof(entries.request) WHEN 'integer' THEN entries.request END
LEFT JOIN pruned ON pruned.number = CASE typeof(entries.request) WHEN 'integer' THEN entries.request END;

-- What opened and closed a gate, how requests ended, and of approvals that were used or taken back: a row of earlier that somebody
-- puts back is compared with them.
CREATE INDEX audit_gates ON entries (request) WHERE type IN ('REQUEST_SETTLED', 'REQUEST_USED', 'REQUEST_VOIDED', 'GRANT_ADDED',
    'GRANT_REVOKED', 'GRANT_ENDED', 'GRANT_REINSTATED', 'TOKEN_CREATED', 'TOKEN_REVOKED', 'TOKEN_REINSTATED', 'PAIRED', 'UNPAIRED',
    'PAIRING_REINSTATED', 'ACCOUNT_SUSPENDED', 'PERSON_LOCKED', 'PERSON_UNLOCKED', 'UNLOCK_ASKED', 'ALL_STOPPED', 'ALL_RESUMED',
    'STORE_RESTORED', 'AGENT_STOPPED', 'AGENT_MUTED', 'AGENT_RESUMED');
CREATE INDEX audit_sessions ON entries (actor, seq) WHERE type IN ('SESSION_STATUS', 'SESSION_ENDED', 'TOOL_STARTED', 'TOOL_FINISHED');
