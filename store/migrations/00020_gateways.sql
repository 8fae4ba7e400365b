-- +goose Up

-- Gateways that are processes of their own: by which token each is known, and the host names that its
-- host certificate is for, with a blank between them.
CREATE TABLE gateways (
    name    TEXT    NOT NULL PRIMARY KEY CHECK (name <> ''),
    hash    BLOB    NOT NULL UNIQUE,
    hosts   TEXT    NOT NULL,
    created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Through which gateway a session goes; '' is the server's own.
ALTER TABLE gateway_sessions ADD COLUMN gateway TEXT NOT NULL DEFAULT '';
