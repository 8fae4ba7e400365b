-- +goose Up

-- Bare machines as their site knows them. doc is the registration in JSON; the
-- columns beside it are for finding it.
CREATE TABLE registrations (
    id    TEXT    PRIMARY KEY CHECK (id <> ''),
    state TEXT    NOT NULL,
    sum   INTEGER NOT NULL,
    doc   TEXT    NOT NULL
) STRICT;
CREATE INDEX registrations_state ON registrations (state, id);

-- Whose an interface is. It is one machine's.
CREATE TABLE registered_macs (
    mac     TEXT PRIMARY KEY CHECK (mac <> ''),
    machine TEXT NOT NULL REFERENCES registrations (id) ON DELETE CASCADE
) STRICT;
CREATE INDEX registered_macs_machine ON registered_macs (machine);

-- What proves to a management controller that it is Muster who asks.
CREATE TABLE power_secrets (
    machine TEXT    PRIMARY KEY REFERENCES registrations (id) ON DELETE CASCADE,
    sum     INTEGER NOT NULL,
    value   BLOB    NOT NULL
) STRICT;
