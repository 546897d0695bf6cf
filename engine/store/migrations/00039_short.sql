-- +goose Up

-- Entries of the audit say their type by its number, and what most of their details say by one character each. Numbers below 24 are
-- those of what opened and closed a gate, how requests ended, and of approvals that were used or taken back, and the next four are of
-- sessions. A type without a number is written as it is.
CREATE TABLE types (
    number INTEGER PRIMARY KEY,
    name   TEXT    NOT NULL UNIQUE
);
INSERT INTO types (number, name) VALUES
    (1, 'REQUEST_SETTLED'), (2, 'REQUEST_USED'), (3, 'REQUEST_VOIDED'), (4, 'GRANT_ADDED'), (5, 'GRANT_REVOKED'),
    (6, 'GRANT_ENDED'), (7, 'GRANT_REINSTATED'), (8, 'TOKEN_CREATED'), (9, 'TOKEN_REVOKED'), (10, 'TOKEN_REINSTATED'),
    (11, 'PAIRED'), (12, 'UNPAIRED'), (13, 'PAIRING_REINSTATED'), (14, 'ACCOUNT_SUSPENDED'), (15, 'PERSON_LOCKED'),
    (16, 'PERSON_UNLOCKED'), (17, 'UNLOCK_ASKED'), (18, 'ALL_STOPPED'), (19, 'ALL_RESUMED'), (20, 'STORE_RESTORED'),
    (21, 'AGENT_STOPPED'), (22, 'AGENT_MUTED'), (23, 'AGENT_RESUMED'), (24, 'SESSION_STATUS'), (25, 'SESSION_ENDED'),
    (26, 'TOOL_STARTED'), (27, 'TOOL_FINISHED'), (28, 'REQUEST_CREATED'), (29, 'REQUEST_SHOWN'), (30, 'REQUEST_VOTED'),
    (31, 'REQUEST_LAPSED'), (32, 'REQUEST_REROUTED'), (33, 'REQUEST_EXTENDED'), (34, 'REQUEST_ESCALATED'),
    (35, 'DECISION_REFUSED'), (36, 'PERMISSION_APPLIED'), (37, 'RUN_FINISHED'), (38, 'WAIT_ACK_ENTER'), (39, 'ACK_APPROVED'),
    (40, 'ACK_REJECTED'), (41, 'ACK_DECISION_HANDLED');

DROP VIEW audit;
DROP INDEX audit_gates;
DROP INDEX audit_sessions;
ALTER TABLE entries RENAME TO long;
CREATE TABLE entries (
    chain   INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    type            NOT NULL, -- its number if it has one
    request         NOT NULL, -- its number if it has a row in requests or pruned, else its id, or nothing
    actor   TEXT    NOT NULL,
    via     TEXT    NOT NULL,
    detail  TEXT    NOT NULL, -- JSON, with a character below a space for what the view audit has in its place
    hash    BLOB    NOT NULL,
    mac     BLOB    NOT NULL,
    prev    BLOB,             -- the hash of the entry before, where that is not here
    PRIMARY KEY (chain, seq)
) WITHOUT ROWID;
INSERT INTO entries
SELECT audit.chain, audit.seq, audit.at, COALESCE(types.number, audit.type), audit.request, audit.actor, audit.via,
    replace(replace(replace(replace(replace(replace(replace(audit.detail, '"digest":"="', char(1)),
        '"kind":"permission"', char(2)), '"kind":"tool"', char(3)), '"state":"approved"', char(4)), '"state":"denied"', char(5)), '"answer":"allow_once"', char(6)), '"answer":"deny"', char(7)),
    audit.hash, audit.mac, audit.prev
FROM long AS audit LEFT JOIN types ON types.name = audit.type
ORDER BY audit.chain, audit.seq;
DROP TABLE long;

CREATE VIEW audit AS
SELECT chains.name AS chain, entries.seq AS seq, entries.at AS at, COALESCE('' || types.name, entries.type) AS type,
    COALESCE('' || requests.id, '' || pruned.id,
        CASE typeof(entries.request) WHEN 'integer' THEN '' || entries.request ELSE entries.request END) AS request, entries.actor AS actor, entries.via AS via,
    CASE typeof(entries.detail) WHEN 'text' THEN
        replace(replace(replace(replace(replace(replace(replace(entries.detail,
            char(2), '"kind":"permission"'), char(3), '"kind":"tool"'), char(4), '"state":"approved"'), char(5), '"state":"denied"'),
            char(6), '"answer":"allow_once"'), char(7), '"answer":"deny"'),
            char(1), COALESCE('"digest":"sha256:' || lower(hex(COALESCE(requests.digest, pruned.digest))) || '"', '"digest":"="'))
        ELSE entries.detail END AS detail,
    COALESCE(entries.prev, (SELECT before.hash FROM entries AS before
        WHERE before.chain = entries.chain AND before.seq = entries.seq - 1), zeroblob(32)) AS prev,
    entries.hash AS hash, entries.mac AS mac
FROM entries JOIN chains ON chains.number = entries.chain
LEFT JOIN types ON types.number = entries.type
LEFT JOIN requests ON requests.number = CASE typeof(entries.request) WHEN 'integer' THEN entries.request END
LEFT JOIN pruned ON pruned.number = CASE typeof(entries.request) WHEN 'integer' THEN entries.request END;

CREATE INDEX audit_gates ON entries (request) WHERE type < 24;
CREATE INDEX audit_sessions ON entries (actor, seq) WHERE type BETWEEN 24 AND 27;

-- The first half of its digest, which covers the caller, identifies an action.
DROP INDEX requests_allowed;
UPDATE requests SET action = substr(action, 1, 16) WHERE length(action) > 16;
CREATE INDEX requests_allowed ON requests (action, decided_at) WHERE state = 'approved' AND decided_via <> 'grant';
