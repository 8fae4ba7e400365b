-- +goose Up

-- Terms and last use of a user's SSH keys. The keys themselves are in the user's document; one
-- without a row has no terms and was not used.
CREATE TABLE key_terms (
    owner       TEXT NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    fingerprint TEXT NOT NULL CHECK (fingerprint <> ''),
    purpose     TEXT NOT NULL,
    added       INTEGER,
    expires     INTEGER,
    used        INTEGER,
    used_from   TEXT NOT NULL,
    used_door   TEXT NOT NULL,
    PRIMARY KEY (owner, fingerprint)
) STRICT, WITHOUT ROWID;

-- Sessions at the gateway. ended is null while one lasts.
CREATE TABLE gateway_sessions (
    n            INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    owner        TEXT    NOT NULL CHECK (owner <> ''),
    project      TEXT    NOT NULL,
    cluster      TEXT    NOT NULL,
    cluster_name TEXT    NOT NULL,
    node         TEXT    NOT NULL,
    login        TEXT    NOT NULL,
    fingerprint  TEXT    NOT NULL,
    source       TEXT    NOT NULL,
    door         TEXT    NOT NULL,
    began        INTEGER NOT NULL,
    ended        INTEGER,
    why          TEXT    NOT NULL,
    text         TEXT    NOT NULL,
    received     INTEGER NOT NULL,
    sent         INTEGER NOT NULL
) STRICT;
CREATE INDEX gateway_sessions_owner   ON gateway_sessions (owner, n);
CREATE INDEX gateway_sessions_cluster ON gateway_sessions (cluster, n);
CREATE INDEX gateway_sessions_open    ON gateway_sessions (n) WHERE ended IS NULL;
