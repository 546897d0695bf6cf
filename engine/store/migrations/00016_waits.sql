-- +goose Up

-- Who waits for a pending request in a way that a daemon started anew cannot see: a process of this machine, until when it waits; a call
-- that was cancelled, and when its request is withdrawn; a client that shows a dialog of its own. Nothing here decides anything.
CREATE TABLE waits (
    request TEXT    NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('process', 'cancelled', 'dialog')),
    call    TEXT    NOT NULL,
    pid     INTEGER NOT NULL,
    began   TEXT    NOT NULL,
    until   INTEGER NOT NULL,
    PRIMARY KEY (request, kind, call)
) WITHOUT ROWID;
