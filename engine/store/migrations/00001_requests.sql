-- +goose Up

-- One row. The chain is the name of this daemon's audit; the key is what codes are made with and never changes.
CREATE TABLE meta (
    chain      TEXT    NOT NULL,
    code_key   BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    beat       INTEGER NOT NULL, -- grows with every health check
    stopped_by TEXT    NOT NULL, -- who stopped everything; empty: nobody
    stopped_at INTEGER NOT NULL,
    alive_at   INTEGER NOT NULL, -- when the daemon last said that it runs
    strangers  INTEGER NOT NULL DEFAULT 0 -- how many more there were than are in strangers
);

-- Times are microseconds since 1970 in UTC, 0 for none. Lists are JSON. What may be long stands last, so that
-- reading a row's state does not read its details.
--
-- The number is that of the newest row plus one: whoever deletes old rows keeps the newest.
CREATE TABLE requests (
    number        INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    revision      INTEGER NOT NULL,
    shown         INTEGER NOT NULL, -- the lowest revision that a copy was last shown at
    state         TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    mode          TEXT    NOT NULL,
    caller        TEXT    NOT NULL,
    caller_uid    INTEGER NOT NULL,
    session       TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    digest        BLOB    NOT NULL,
    key           TEXT    NOT NULL,
    hook          TEXT    NOT NULL, -- the dialect of an agent's own hook that asked; empty: none
    key_live      BOOLEAN NOT NULL, -- the key still finds this row
    pruned        BOOLEAN NOT NULL, -- what was asked in words has been deleted
    created_at    INTEGER NOT NULL,
    deadline      INTEGER NOT NULL,
    escalate_at   INTEGER NOT NULL,
    remind_at     INTEGER NOT NULL, -- the first of reminders
    decided_at    INTEGER NOT NULL,
    used_at       INTEGER NOT NULL,
    collected_at  INTEGER NOT NULL,
    void_at       INTEGER NOT NULL,
    lapsed_at     INTEGER NOT NULL,
    left_at       INTEGER NOT NULL,
    answer        TEXT    NOT NULL,
    scope         TEXT    NOT NULL,
    decided_by    TEXT    NOT NULL,
    decided_via   TEXT    NOT NULL,
    timed_out     BOOLEAN NOT NULL,
    defaulted     BOOLEAN NOT NULL,
    used_call     TEXT    NOT NULL,
    agent         TEXT    NOT NULL,
    claimed       BOOLEAN NOT NULL,
    host          TEXT    NOT NULL,
    cwd           TEXT    NOT NULL,
    tool          TEXT    NOT NULL,
    affected_path TEXT    NOT NULL,
    env_hash      TEXT    NOT NULL,
    widest        TEXT    NOT NULL,
    high_risk     BOOLEAN NOT NULL,
    background    BOOLEAN NOT NULL,
    foreground    TEXT    NOT NULL,
    step          INTEGER NOT NULL,
    quorum        INTEGER NOT NULL,
    asked         TEXT    NOT NULL,
    place         TEXT    NOT NULL, -- where it is shown once for all who are asked; empty: nowhere
    escalate_to   TEXT    NOT NULL,
    reminders     TEXT    NOT NULL, -- times
    under         TEXT    NOT NULL, -- ids of grants
    options       TEXT    NOT NULL,
    tags          TEXT    NOT NULL,
    held          TEXT    NOT NULL,
    env_names     TEXT    NOT NULL,
    choices       TEXT    NOT NULL,
    comment       TEXT    NOT NULL,
    failure       TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    message       TEXT    NOT NULL,
    input         TEXT    NOT NULL,
    calls         TEXT    NOT NULL,
    details       TEXT    NOT NULL
);

-- Every index is either in the order of time or holds only what is still open, so that it stays small; but for that of
-- denials, where a caller's equal ones have to be found among however many others.
CREATE UNIQUE INDEX requests_key ON requests (caller, key) WHERE key_live;
CREATE INDEX requests_equal ON requests (caller, session, digest) WHERE state = 'pending';
CREATE INDEX requests_pending ON requests (number) WHERE state = 'pending';
CREATE INDEX requests_deadline ON requests (deadline) WHERE state = 'pending';
CREATE INDEX requests_escalate ON requests (escalate_at, deadline) WHERE state = 'pending' AND escalate_at > 0;
CREATE INDEX requests_remind ON requests (remind_at, deadline) WHERE state = 'pending' AND remind_at > 0;
CREATE INDEX requests_denied ON requests (caller, digest, decided_at) WHERE state = 'denied';
CREATE INDEX requests_settled ON requests (pruned, decided_at) WHERE state <> 'pending';
CREATE INDEX requests_uncollected ON requests (decided_at)
    WHERE state = 'approved' AND collected_at = 0 AND void_at = 0 AND lapsed_at = 0;
CREATE INDEX requests_place ON requests (place, number) WHERE state = 'pending' AND place <> '';
CREATE INDEX requests_lagging ON requests (number) WHERE revision > shown;

CREATE TABLE votes (
    request TEXT    NOT NULL REFERENCES requests (id),
    n       INTEGER NOT NULL, -- in the order cast
    voter   TEXT    NOT NULL,
    via     TEXT    NOT NULL,
    answer  TEXT    NOT NULL,
    call    INTEGER NOT NULL,
    comment TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    key     TEXT    NOT NULL,
    PRIMARY KEY (request, n)
) WITHOUT ROWID;

CREATE UNIQUE INDEX votes_key ON votes (key) WHERE key <> '';

-- The copies of a request in one place are one message, and have the same ref and button.
CREATE TABLE copies (
    request   TEXT    NOT NULL REFERENCES requests (id),
    person    TEXT    NOT NULL,
    connector TEXT    NOT NULL,
    place     TEXT    NOT NULL, -- empty: the person's own
    ref       TEXT    NOT NULL,
    button    TEXT    NOT NULL,
    shown     INTEGER NOT NULL,
    since     INTEGER NOT NULL,
    sent_at   INTEGER NOT NULL,
    failed    TEXT    NOT NULL,
    PRIMARY KEY (request, person, connector, place)
) WITHOUT ROWID;

-- A grant without an end has the greatest integer as its end.
CREATE TABLE grants (
    id         TEXT    NOT NULL PRIMARY KEY,
    caller     TEXT    NOT NULL,
    session    TEXT    NOT NULL,
    tags       TEXT    NOT NULL,
    tool       TEXT    NOT NULL,
    call       BLOB    NOT NULL,
    until      INTEGER NOT NULL,
    request    TEXT    NOT NULL REFERENCES requests (id),
    granted_by TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL, -- it was noted that it is over
    used       INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX grants_live ON grants (caller, until) WHERE revoked_at = 0 AND ended_at = 0;
CREATE INDEX grants_open ON grants (until) WHERE revoked_at = 0 AND ended_at = 0;
CREATE INDEX grants_request ON grants (request);

-- Which requests a grant made unnecessary to ask.
CREATE TABLE uses (
    granted TEXT    NOT NULL REFERENCES grants (id),
    request INTEGER NOT NULL REFERENCES requests (number),
    PRIMARY KEY (granted, request)
) WITHOUT ROWID;

CREATE INDEX uses_request ON uses (request);

-- Notices that are still to be sent. A person has at most one that reminds of what waits, and so has a place.
CREATE TABLE notices (
    id         TEXT    NOT NULL PRIMARY KEY,
    person     TEXT    NOT NULL, -- empty: all in the place
    place      TEXT    NOT NULL,
    about      TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    caused_by  TEXT    NOT NULL,
    urgent     BOOLEAN NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE UNIQUE INDEX notices_waiting ON notices (person, place) WHERE about = 'waiting';
CREATE UNIQUE INDEX notices_strangers ON notices (about) WHERE about = 'strangers';
CREATE INDEX notices_created ON notices (created_at);

-- What people wrote to agents of ours. The words stay until the agent has them, the key longer.
CREATE TABLE messages (
    number     INTEGER PRIMARY KEY,
    key        TEXT    NOT NULL UNIQUE,
    agent      TEXT    NOT NULL,
    sender     TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    heard_at   INTEGER NOT NULL
);

CREATE INDEX messages_unheard ON messages (agent, number) WHERE heard_at = 0;
CREATE INDEX messages_waiting ON messages (created_at) WHERE heard_at = 0;
CREATE INDEX messages_heard ON messages (created_at) WHERE heard_at > 0;

-- What agents of ours said. The words stay until all of it was sent, the key longer.
CREATE TABLE utterances (
    number     INTEGER PRIMARY KEY,
    key        TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    person     TEXT    NOT NULL,
    via        TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    sent       INTEGER NOT NULL, -- so many of its messages were
    done       BOOLEAN NOT NULL, -- all of them were, or never will be
    created_at INTEGER NOT NULL
);

CREATE UNIQUE INDEX utterances_key ON utterances (agent, key) WHERE key <> '';
CREATE INDEX utterances_unsaid ON utterances (agent, number) WHERE NOT done;
CREATE INDEX utterances_said ON utterances (agent, number) WHERE done;
CREATE INDEX utterances_waiting ON utterances (created_at) WHERE NOT done;
CREATE INDEX utterances_sent ON utterances (created_at) WHERE done;

-- Which agent a message in a chat is from, so that a reply to it finds its author.
CREATE TABLE authors (
    number  INTEGER PRIMARY KEY,
    via     TEXT    NOT NULL,
    ref     TEXT    NOT NULL,
    agent   TEXT    NOT NULL,
    sent_at INTEGER NOT NULL,
    UNIQUE (via, ref)
);

CREATE INDEX authors_agent ON authors (agent, number);
CREATE INDEX authors_sent ON authors (sent_at);

-- Which of their agents somebody talks to in a chat, where they chose one.
CREATE TABLE foregrounds (
    person TEXT NOT NULL,
    via    TEXT NOT NULL,
    agent  TEXT NOT NULL,
    PRIMARY KEY (person, via)
) WITHOUT ROWID;

-- Of a token's secret only the hash is kept.
CREATE TABLE tokens (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    hash       BLOB    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX tokens_name ON tokens (name, id) WHERE revoked_at = 0;

-- Accounts of channels that proved to be people's.
CREATE TABLE pairings (
    person    TEXT    NOT NULL,
    via       TEXT    NOT NULL,
    address   TEXT    NOT NULL,
    alias     TEXT    NOT NULL,
    paired_at INTEGER NOT NULL,
    PRIMARY KEY (person, via),
    UNIQUE (via, address)
) WITHOUT ROWID;

-- Accounts of channels that may be somebody else's by now, until they are paired again.
CREATE TABLE suspensions (
    via     TEXT    NOT NULL,
    address TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (via, address)
) WITHOUT ROWID;

-- Accounts of nobody here that wrote, and their claimed names: those that the owner is to be told of, of whom there is a
-- most, and for a day those that were told of.
CREATE TABLE strangers (
    n        INTEGER PRIMARY KEY, -- grows
    via      TEXT    NOT NULL,
    account  TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    first_at INTEGER NOT NULL,
    told_at  INTEGER NOT NULL,
    UNIQUE (via, account)
);

CREATE INDEX strangers_told ON strangers (told_at);

-- Places that go by another name now.
CREATE TABLE moved (
    was TEXT NOT NULL PRIMARY KEY,
    now TEXT NOT NULL
) WITHOUT ROWID;

-- Sessions of agents of ours, one row each, and below it what was said and done in them.
CREATE TABLE sessions (
    number     INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    version    INTEGER NOT NULL,
    agent      TEXT    NOT NULL,
    person     TEXT    NOT NULL,
    parent     TEXT    NOT NULL, -- a session; empty: none
    status     TEXT    NOT NULL,
    model      TEXT    NOT NULL,
    tokens     INTEGER NOT NULL,
    cost       INTEGER NOT NULL,
    request    TEXT    NOT NULL, -- what it waits for; empty: nothing
    tool       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL,
    turns      INTEGER NOT NULL, -- the newest turn's seq, also when that has been deleted
    pruned     BOOLEAN NOT NULL, -- its words have been deleted
    step       TEXT    NOT NULL
);

CREATE INDEX sessions_open ON sessions (id) WHERE ended_at = 0;
CREATE INDEX sessions_current ON sessions (agent, number) WHERE ended_at = 0;
CREATE INDEX sessions_waiting ON sessions (request) WHERE ended_at = 0 AND request <> '';
CREATE INDEX sessions_person ON sessions (person, id);
CREATE INDEX sessions_ended ON sessions (pruned, ended_at) WHERE ended_at > 0;

CREATE TABLE turns (
    number     INTEGER PRIMARY KEY,
    session    TEXT    NOT NULL REFERENCES sessions (id),
    seq        INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    dropped_at INTEGER NOT NULL, -- 0: it is in the transcript
    content    TEXT    NOT NULL,
    UNIQUE (session, seq)
);

CREATE INDEX turns_transcript ON turns (session, seq) WHERE dropped_at = 0;
CREATE INDEX turns_dropped ON turns (dropped_at) WHERE dropped_at > 0;

-- What waits for a session. The words stay until they are in its transcript, the key longer.
CREATE TABLE posts (
    number   INTEGER PRIMARY KEY,
    session  TEXT    NOT NULL REFERENCES sessions (id),
    key      TEXT    NOT NULL,
    sender   TEXT    NOT NULL, -- empty: the daemon
    silent   BOOLEAN NOT NULL,
    chain    INTEGER NOT NULL, -- runs that led to it since a person or the clock began the first
    at       INTEGER NOT NULL,
    taken_at INTEGER NOT NULL,
    text     TEXT    NOT NULL,
    UNIQUE (session, key)
);

CREATE INDEX posts_waiting ON posts (session, number) WHERE taken_at = 0;
CREATE INDEX posts_taken ON posts (taken_at) WHERE taken_at > 0;

CREATE TABLE tool_calls (
    id        INTEGER PRIMARY KEY,
    session   TEXT    NOT NULL REFERENCES sessions (id),
    step      INTEGER NOT NULL,
    call      INTEGER NOT NULL,
    tool      TEXT    NOT NULL,
    began_at  INTEGER NOT NULL,
    ended_at  INTEGER NOT NULL, -- 0: it has not, or nobody knows how
    success   BOOLEAN NOT NULL,
    exit_code INTEGER,          -- of a command
    error     TEXT    NOT NULL,
    arguments TEXT    NOT NULL,
    UNIQUE (session, step, call)
);

CREATE TABLE artifacts (
    id      INTEGER PRIMARY KEY,
    session TEXT    NOT NULL REFERENCES sessions (id),
    step    INTEGER NOT NULL,
    call    INTEGER NOT NULL, -- 0: none
    type    TEXT    NOT NULL CHECK (type IN ('stdout', 'stderr', 'diagnostics', 'prompt', 'validation_error',
        'chat_user_message', 'chat_assistant_message', 'chat_session', 'chat_summary', 'approval_granted', 'approval_denied')),
    content TEXT    NOT NULL
);

CREATE INDEX artifacts_session ON artifacts (session);

-- When scheduled agents run.
CREATE TABLE timetables (
    agent   TEXT    NOT NULL PRIMARY KEY,
    next_at INTEGER NOT NULL,
    asked   TEXT    NOT NULL -- a request; empty: none yet
) WITHOUT ROWID;

-- How far those who follow the audit have come.
CREATE TABLE cursors (
    name TEXT    NOT NULL PRIMARY KEY,
    seq  INTEGER NOT NULL
) WITHOUT ROWID;

-- The next three are for people who look into the file.
CREATE VIEW executions AS
SELECT id, tool AS tool_name, arguments AS arguments_json,
    strftime('%Y-%m-%dT%H:%M:%fZ', began_at / 1000000.0, 'unixepoch') AS timestamp,
    CASE WHEN ended_at > 0 THEN success END AS success, exit_code,
    CASE WHEN ended_at > 0 THEN (ended_at - began_at) / 1000 END AS duration_ms,
    NULLIF(error, '') AS error_message
FROM tool_calls;

CREATE VIEW execution_artifacts AS
SELECT artifacts.id, tool_calls.id AS execution_id, type AS artifact_type, content AS content_json
FROM artifacts LEFT JOIN tool_calls
    ON tool_calls.session = artifacts.session AND tool_calls.step = artifacts.step AND tool_calls.call = artifacts.call
        AND artifacts.call > 0;

CREATE VIEW aic_interactions AS
SELECT number AS id, COALESCE(NULLIF(session, ''), id) AS task_id, message AS conflict_description, choices AS options,
    CASE WHEN answer = 'other' THEN NULLIF(comment, '')
        WHEN answer LIKE 'option!_%' ESCAPE '!' THEN json_extract(choices, '$[' || (CAST(substr(answer, 8) AS INTEGER) - 1) || ']')
    END AS response,
    timed_out, strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000000.0, 'unixepoch') AS timestamp
FROM requests WHERE kind = 'clarification';

CREATE TABLE audit (
    chain   TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    type    TEXT    NOT NULL,
    request TEXT    NOT NULL,
    actor   TEXT    NOT NULL,
    via     TEXT    NOT NULL,
    detail  TEXT    NOT NULL,
    prev    BLOB    NOT NULL,
    hash    BLOB    NOT NULL,
    PRIMARY KEY (chain, seq)
) WITHOUT ROWID;
