-- The schema that the migrations make up to number 32, as SQLite keeps it: a new store begins with it. It is checked against them.

CREATE TABLE artifacts (
    id      INTEGER PRIMARY KEY,
    session TEXT    NOT NULL REFERENCES sessions (id),
    step    INTEGER NOT NULL,
    call    INTEGER NOT NULL, -- 0: none
    type    TEXT    NOT NULL CHECK (type IN ('stdout', 'stderr', 'diagnostics', 'prompt', 'validation_error',
        'chat_user_message', 'chat_assistant_message', 'chat_session', 'chat_summary', 'approval_granted', 'approval_denied')),
    content TEXT    NOT NULL
);

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
    hash    BLOB    NOT NULL, mac BLOB NOT NULL DEFAULT x'',
    PRIMARY KEY (chain, seq)
) WITHOUT ROWID;

CREATE TABLE authors (
    number  INTEGER PRIMARY KEY,
    via     TEXT    NOT NULL,
    ref     TEXT    NOT NULL,
    agent   TEXT    NOT NULL,
    sent_at INTEGER NOT NULL,
    UNIQUE (via, ref)
);

CREATE TABLE away (
    person   TEXT    PRIMARY KEY,
    until_at INTEGER NOT NULL,
    to_name  TEXT    NOT NULL, -- who is asked instead where they may decide, or empty
    at       INTEGER NOT NULL,
    via      TEXT    NOT NULL,
    mac      BLOB    NOT NULL
) WITHOUT ROWID;

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
    failed    TEXT    NOT NULL, dated INTEGER NOT NULL DEFAULT 0, mac BLOB NOT NULL DEFAULT x'', burst TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (request, person, connector, place)
) WITHOUT ROWID;

CREATE TABLE cursors (
    name TEXT    NOT NULL PRIMARY KEY,
    seq  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE foregrounds (
    person TEXT NOT NULL,
    via    TEXT NOT NULL,
    agent  TEXT NOT NULL,
    PRIMARY KEY (person, via)
) WITHOUT ROWID;

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
, suspended_at INTEGER NOT NULL DEFAULT 0, mac BLOB NOT NULL DEFAULT x'', rule TEXT NOT NULL DEFAULT '') WITHOUT ROWID;

CREATE TABLE locks (
    person    TEXT    PRIMARY KEY,
    accounts  TEXT    NOT NULL, -- that they had, which stay locked whoever the configuration gives them to
    locked_at INTEGER NOT NULL,
    locked_by TEXT    NOT NULL,
    via       TEXT    NOT NULL,
    unlocking TEXT    NOT NULL, -- people who have said that it may end
    mac       BLOB    NOT NULL
) WITHOUT ROWID;

CREATE TABLE messages (
    number     INTEGER PRIMARY KEY,
    key        TEXT    NOT NULL UNIQUE,
    agent      TEXT    NOT NULL,
    sender     TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    heard_at   INTEGER NOT NULL
);

CREATE TABLE meta (
    chain      TEXT    NOT NULL,
    code_key   BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    beat       INTEGER NOT NULL, -- grows with every health check
    stopped_by TEXT    NOT NULL, -- who stopped everything; empty: nobody
    stopped_at INTEGER NOT NULL,
    alive_at   INTEGER NOT NULL, -- when the daemon last said that it runs
    strangers  INTEGER NOT NULL DEFAULT 0 -- how many more there were than are in strangers
, opens INTEGER NOT NULL DEFAULT 0, marked BOOLEAN NOT NULL DEFAULT FALSE, answered TEXT NOT NULL DEFAULT '', restored_at INTEGER NOT NULL DEFAULT 0, numbers_above INTEGER NOT NULL DEFAULT 0, mac BLOB NOT NULL DEFAULT x'', shut TEXT NOT NULL DEFAULT '', seals INTEGER NOT NULL DEFAULT 0);

CREATE TABLE moved (
    was TEXT NOT NULL PRIMARY KEY,
    now TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE notices (
    id         TEXT    NOT NULL PRIMARY KEY,
    person     TEXT    NOT NULL, -- empty: all in the place
    place      TEXT    NOT NULL,
    about      TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    caused_by  TEXT    NOT NULL,
    urgent     BOOLEAN NOT NULL,
    created_at INTEGER NOT NULL
, agent   TEXT    NOT NULL DEFAULT '', session TEXT    NOT NULL DEFAULT '', title   TEXT    NOT NULL DEFAULT '', words   TEXT    NOT NULL DEFAULT '', silent  BOOLEAN NOT NULL DEFAULT FALSE) WITHOUT ROWID;

CREATE TABLE pairings (
    person    TEXT    NOT NULL,
    via       TEXT    NOT NULL,
    address   TEXT    NOT NULL,
    alias     TEXT    NOT NULL,
    paired_at INTEGER NOT NULL, suspended_at INTEGER NOT NULL DEFAULT 0, mac BLOB NOT NULL DEFAULT x'',
    PRIMARY KEY (person, via),
    UNIQUE (via, address)
) WITHOUT ROWID;

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
, earlier_at INTEGER NOT NULL DEFAULT 0, folder TEXT NOT NULL DEFAULT '', mac BLOB NOT NULL DEFAULT x'', action BLOB NOT NULL DEFAULT x'', voided_by TEXT NOT NULL DEFAULT '', beyond INTEGER NOT NULL DEFAULT 0, was TEXT NOT NULL DEFAULT '[]', ruled TEXT NOT NULL DEFAULT '[]');

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
, debug BOOLEAN NOT NULL DEFAULT FALSE, audited INTEGER NOT NULL DEFAULT 0, mac BLOB NOT NULL DEFAULT x'');

CREATE TABLE strangers (
    n        INTEGER PRIMARY KEY, -- grows
    via      TEXT    NOT NULL,
    account  TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    first_at INTEGER NOT NULL,
    told_at  INTEGER NOT NULL, alias TEXT NOT NULL DEFAULT '', person TEXT NOT NULL DEFAULT '', proposed_by TEXT NOT NULL DEFAULT '', proposed_from TEXT NOT NULL DEFAULT '', proposed_at INTEGER NOT NULL DEFAULT 0, mac BLOB NOT NULL DEFAULT x'',
    UNIQUE (via, account)
);

CREATE TABLE suspensions (
    via     TEXT    NOT NULL,
    address TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (via, address)
) WITHOUT ROWID;

CREATE TABLE timetables (
    agent   TEXT    NOT NULL PRIMARY KEY,
    next_at INTEGER NOT NULL,
    asked   TEXT    NOT NULL -- a request; empty: none yet
, mac BLOB NOT NULL DEFAULT x'') WITHOUT ROWID;

CREATE TABLE tokens (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    hash       BLOB    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL
, suspended_at INTEGER NOT NULL DEFAULT 0, mac BLOB NOT NULL DEFAULT x'', person TEXT NOT NULL DEFAULT '') WITHOUT ROWID;

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
    arguments TEXT    NOT NULL, affected_path TEXT NOT NULL DEFAULT '',
    UNIQUE (session, step, call)
);

CREATE TABLE turns (
    number     INTEGER PRIMARY KEY,
    session    TEXT    NOT NULL REFERENCES sessions (id),
    seq        INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    dropped_at INTEGER NOT NULL, -- 0: it is in the transcript
    content    TEXT    NOT NULL,
    UNIQUE (session, seq)
);

CREATE TABLE uses (
    granted TEXT    NOT NULL REFERENCES grants (id),
    request INTEGER NOT NULL REFERENCES requests (number),
    PRIMARY KEY (granted, request)
) WITHOUT ROWID;

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

CREATE TABLE votes (
    request TEXT    NOT NULL REFERENCES requests (id),
    n       INTEGER NOT NULL, -- in the order cast
    voter   TEXT    NOT NULL,
    via     TEXT    NOT NULL,
    answer  TEXT    NOT NULL,
    call    INTEGER NOT NULL,
    comment TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    key     TEXT    NOT NULL, account TEXT NOT NULL DEFAULT '', rule TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (request, n)
) WITHOUT ROWID;

CREATE TABLE waits (
    request TEXT    NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('process', 'cancelled', 'dialog')),
    call    TEXT    NOT NULL,
    pid     INTEGER NOT NULL,
    began   TEXT    NOT NULL,
    until   INTEGER NOT NULL,
    PRIMARY KEY (request, kind, call)
) WITHOUT ROWID;

CREATE UNIQUE INDEX requests_key ON requests (caller, key) WHERE key_live;

CREATE INDEX requests_equal ON requests (caller, session, digest) WHERE state = 'pending';

CREATE INDEX requests_pending ON requests (number) WHERE state = 'pending';

CREATE INDEX requests_deadline ON requests (deadline) WHERE state = 'pending';

CREATE INDEX requests_escalate ON requests (escalate_at, deadline) WHERE state = 'pending' AND escalate_at > 0;

CREATE INDEX requests_remind ON requests (remind_at, deadline) WHERE state = 'pending' AND remind_at > 0;

CREATE INDEX requests_settled ON requests (pruned, decided_at) WHERE state <> 'pending';

CREATE INDEX requests_uncollected ON requests (decided_at)
    WHERE state = 'approved' AND collected_at = 0 AND void_at = 0 AND lapsed_at = 0;

CREATE INDEX requests_place ON requests (place, number) WHERE state = 'pending' AND place <> '';

CREATE INDEX requests_lagging ON requests (number) WHERE revision > shown;

CREATE UNIQUE INDEX votes_key ON votes (key) WHERE key <> '';

CREATE INDEX grants_live ON grants (caller, until) WHERE revoked_at = 0 AND ended_at = 0;

CREATE INDEX grants_open ON grants (until) WHERE revoked_at = 0 AND ended_at = 0;

CREATE INDEX grants_request ON grants (request);

CREATE INDEX uses_request ON uses (request);

CREATE UNIQUE INDEX notices_waiting ON notices (person, place) WHERE about = 'waiting';

CREATE UNIQUE INDEX notices_strangers ON notices (about) WHERE about = 'strangers';

CREATE INDEX notices_created ON notices (created_at);

CREATE INDEX messages_unheard ON messages (agent, number) WHERE heard_at = 0;

CREATE INDEX messages_waiting ON messages (created_at) WHERE heard_at = 0;

CREATE INDEX messages_heard ON messages (created_at) WHERE heard_at > 0;

CREATE UNIQUE INDEX utterances_key ON utterances (agent, key) WHERE key <> '';

CREATE INDEX utterances_unsaid ON utterances (agent, number) WHERE NOT done;

CREATE INDEX utterances_said ON utterances (agent, number) WHERE done;

CREATE INDEX utterances_waiting ON utterances (created_at) WHERE NOT done;

CREATE INDEX utterances_sent ON utterances (created_at) WHERE done;

CREATE INDEX authors_agent ON authors (agent, number);

CREATE INDEX authors_sent ON authors (sent_at);

CREATE INDEX tokens_name ON tokens (name, id) WHERE revoked_at = 0;

CREATE INDEX strangers_told ON strangers (told_at);

CREATE INDEX sessions_open ON sessions (id) WHERE ended_at = 0;

CREATE INDEX sessions_current ON sessions (agent, number) WHERE ended_at = 0;

CREATE INDEX sessions_waiting ON sessions (request) WHERE ended_at = 0 AND request <> '';

CREATE INDEX sessions_person ON sessions (person, id);

CREATE INDEX sessions_ended ON sessions (pruned, ended_at) WHERE ended_at > 0;

CREATE INDEX turns_transcript ON turns (session, seq) WHERE dropped_at = 0;

CREATE INDEX turns_dropped ON turns (dropped_at) WHERE dropped_at > 0;

CREATE INDEX posts_waiting ON posts (session, number) WHERE taken_at = 0;

CREATE INDEX posts_taken ON posts (taken_at) WHERE taken_at > 0;

CREATE INDEX artifacts_session ON artifacts (session);

CREATE INDEX requests_denied ON requests (caller, action, decided_at) WHERE state = 'denied';

CREATE INDEX requests_kept ON requests (caller, session, digest, decided_at)
    WHERE state <> 'pending' AND collected_at = 0 AND lapsed_at = 0 AND key = '';

CREATE INDEX audit_sessions ON audit (actor, seq) WHERE type IN ('SESSION_STATUS', 'SESSION_ENDED', 'TOOL_STARTED', 'TOOL_FINISHED');

CREATE INDEX audit_settled ON audit (request) WHERE type = 'REQUEST_SETTLED';

CREATE INDEX copies_burst ON copies (burst) WHERE burst <> '';

CREATE INDEX requests_allowed ON requests (caller, action, decided_at) WHERE state = 'approved' AND decided_via <> 'grant';

CREATE INDEX audit_gates ON audit (request) WHERE type IN ('REQUEST_USED', 'REQUEST_VOIDED', 'GRANT_ADDED', 'GRANT_REVOKED',
    'GRANT_ENDED', 'GRANT_REINSTATED', 'TOKEN_CREATED', 'TOKEN_REVOKED', 'TOKEN_REINSTATED', 'PAIRED', 'UNPAIRED',
    'PAIRING_REINSTATED', 'ACCOUNT_SUSPENDED', 'PERSON_LOCKED', 'PERSON_UNLOCKED', 'UNLOCK_ASKED', 'ALL_STOPPED', 'ALL_RESUMED',
    'STORE_RESTORED', 'AGENT_STOPPED', 'AGENT_MUTED', 'AGENT_RESUMED');

CREATE INDEX requests_refused ON requests (caller, decided_at) WHERE state IN ('denied', 'expired') OR timed_out;

CREATE VIEW agent_sessions AS
SELECT id, agent, person, upper(status) AS status, model, tokens, version, NULLIF(request, '') AS waiting_on,
    NULLIF(tool, '') AS tool, debug,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000000.0, 'unixepoch') AS started,
    strftime('%Y-%m-%dT%H:%M:%fZ', changed_at / 1000000.0, 'unixepoch') AS changed,
    CASE WHEN ended_at > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1000000.0, 'unixepoch') END AS ended
FROM sessions;

CREATE VIEW aic_interactions AS
SELECT number AS id, COALESCE(NULLIF(session, ''), id) AS task_id, message AS conflict_description, choices AS options,
    CASE WHEN answer = 'other' THEN NULLIF(comment, '')
        WHEN answer LIKE 'option!_%' ESCAPE '!' THEN json_extract(choices, '$[' || (CAST(substr(answer, 8) AS INTEGER) - 1) || ']')
    END AS response,
    timed_out, strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000000.0, 'unixepoch') AS timestamp, defaulted, state
FROM requests WHERE kind = 'clarification';

CREATE VIEW execution_artifacts AS
SELECT artifacts.id, tool_calls.id AS execution_id, type AS artifact_type, content AS content_json
FROM artifacts LEFT JOIN tool_calls
    ON tool_calls.session = artifacts.session AND tool_calls.step = artifacts.step AND tool_calls.call = artifacts.call
        AND artifacts.call > 0;

CREATE VIEW executions AS
SELECT id, tool AS tool_name, arguments AS arguments_json,
    strftime('%Y-%m-%dT%H:%M:%fZ', began_at / 1000000.0, 'unixepoch') AS timestamp,
    CASE WHEN ended_at > 0 THEN success END AS success, exit_code,
    CASE WHEN ended_at > 0 THEN (ended_at - began_at) / 1000 END AS duration_ms,
    NULLIF(error, '') AS error_message
FROM tool_calls;
