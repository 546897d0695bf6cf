-- +goose Up

-- Entries have one number for a key: that of their chain times 2^48, and their own in it. The first chain has the number 0, so that
-- its entries have their own.
UPDATE chains SET number = -number;
UPDATE chains SET number = -number - 1;

DROP VIEW audit;
DROP INDEX audit_gates;
DROP INDEX audit_sessions;
ALTER TABLE entries RENAME TO long;
CREATE TABLE entries (
    key     INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    type            NOT NULL, -- its number if it has one
    request         NOT NULL, -- its number if it has a row in requests or pruned, else its id, or nothing
    actor   TEXT    NOT NULL,
    via     TEXT    NOT NULL,
    detail  TEXT    NOT NULL, -- JSON, with a character below a space for what the view audit has in its place
    hash    BLOB    NOT NULL,
    mac     BLOB    NOT NULL,
    prev    BLOB              -- the hash of the entry before, where that is not here
);
INSERT OR IGNORE INTO entries
SELECT (chain - 1) << 48 | seq, at, type, request, actor, via, detail, hash, mac, prev FROM long ORDER BY chain, seq;
DROP TABLE long;

CREATE VIEW audit AS
SELECT chains.name AS chain, entries.key & 281474976710655 AS seq, entries.at AS at, COALESCE('' || types.name, entries.type) AS type,
    COALESCE('' || requests.id, '' || pruned.id,
        CASE typeof(entries.request) WHEN 'integer' THEN '' || entries.request ELSE entries.request END) AS request, entries.actor AS actor, entries.via AS via,
    CASE typeof(entries.detail) WHEN 'text' THEN
        replace(replace(replace(replace(replace(replace(replace(entries.detail,
            char(2), '"kind":"permission"'), char(3), '"kind":"tool"'), char(4), '"state":"approved"'), char(5), '"state":"denied"'),
            char(6), '"answer":"allow_once"'), char(7), '"answer":"deny"'),
            char(1), COALESCE('"digest":"sha256:' || lower(hex(COALESCE(requests.digest, pruned.digest))) || '"', '"digest":"="'))
        ELSE entries.detail END AS detail,
    COALESCE(entries.prev, (SELECT before.hash FROM entries AS before WHERE before.key = entries.key - 1), zeroblob(32)) AS prev,
    entries.hash AS hash, entries.mac AS mac, entries.key AS key
FROM entries JOIN chains ON chains.number = entries.key >> 48
LEFT JOIN types ON types.number = entries.type
LEFT JOIN requests ON requests.number = CASE typeof(entries.request) WHEN 'integer' THEN entries.request END
LEFT JOIN pruned ON pruned.number = CASE typeof(entries.request) WHEN 'integer' THEN entries.request END;

CREATE INDEX audit_gates ON entries (request) WHERE type < 24;
CREATE INDEX audit_sessions ON entries (actor) WHERE type BETWEEN 24 AND 27;

-- Votes and copies name their request by its number. The views votes and copies have its id.
CREATE TABLE request_votes (
    request INTEGER NOT NULL REFERENCES requests (number),
    n       INTEGER NOT NULL, -- in the order cast
    voter   TEXT    NOT NULL,
    via     TEXT    NOT NULL,
    answer  TEXT    NOT NULL,
    call    INTEGER NOT NULL,
    comment TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    key     TEXT    NOT NULL,
    account TEXT    NOT NULL,
    rule    TEXT    NOT NULL,
    PRIMARY KEY (request, n)
) WITHOUT ROWID;
INSERT INTO request_votes
SELECT requests.number, n, voter, via, votes.answer, call, votes.comment, at, votes.key, account, rule
FROM votes JOIN requests ON requests.id = votes.request ORDER BY votes.request, n;
DROP TABLE votes;
CREATE UNIQUE INDEX votes_key ON request_votes (key) WHERE key <> '';
CREATE VIEW votes AS
SELECT requests.id AS request, v.n AS n, v.voter AS voter, v.via AS via, v.answer AS answer, v.call AS call, v.comment AS comment,
    v.at AS at, v.key AS key, v.account AS account, v.rule AS rule
FROM request_votes AS v JOIN requests ON requests.number = v.request;

CREATE TABLE request_copies (
    request   INTEGER NOT NULL REFERENCES requests (number),
    person    TEXT    NOT NULL,
    connector TEXT    NOT NULL,
    place     TEXT    NOT NULL, -- empty: the person's own
    ref       TEXT    NOT NULL,
    button    TEXT    NOT NULL,
    shown     INTEGER NOT NULL,
    since     INTEGER NOT NULL,
    sent_at   INTEGER NOT NULL,
    failed    TEXT    NOT NULL,
    dated     INTEGER NOT NULL,
    burst     TEXT    NOT NULL,
    mac       BLOB    NOT NULL,
    PRIMARY KEY (request, person, connector, place)
) WITHOUT ROWID;
INSERT INTO request_copies
SELECT requests.number, person, connector, copies.place, ref, button, MIN(copies.shown, 2147483647), since, sent_at, failed, dated, burst,
    copies.mac
FROM copies JOIN requests ON requests.id = copies.request ORDER BY copies.request, person, connector, copies.place;
DROP TABLE copies;
CREATE INDEX copies_burst ON request_copies (burst) WHERE burst <> '';
CREATE VIEW copies AS
SELECT requests.id AS request, c.person AS person, c.connector AS connector, c.place AS place, c.ref AS ref, c.button AS button,
    c.shown AS shown, c.since AS since, c.sent_at AS sent_at, c.failed AS failed, c.dated AS dated, c.burst AS burst, c.mac AS mac
FROM request_copies AS c JOIN requests ON requests.number = c.request;
