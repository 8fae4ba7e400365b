-- +goose Up

-- Times are nanoseconds since 1970, UTC. doc is the whole record as JSON; the
-- other columns are what is searched or constrained, and sum is the CRC-32C of
-- doc. rev grows with every change of a record. owner and project say whose a
-- record is: 'system' and '' for what belongs to the site.

CREATE TABLE clusters (
    n             INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    owner         TEXT    NOT NULL CHECK (owner <> ''),
    project       TEXT    NOT NULL CHECK (project <> ''),
    name          TEXT    NOT NULL CHECK (name <> ''),
    phase         TEXT    NOT NULL,
    image         TEXT    NOT NULL,
    network_index INTEGER,
    created       INTEGER NOT NULL,
    rev           INTEGER NOT NULL,
    sum           INTEGER NOT NULL,
    doc           TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX clusters_name    ON clusters (project, name)  WHERE phase <> 'deleted';
CREATE UNIQUE INDEX clusters_network ON clusters (network_index)  WHERE phase <> 'deleted' AND network_index IS NOT NULL;
CREATE INDEX        clusters_living  ON clusters (created)        WHERE phase <> 'deleted';
CREATE INDEX        clusters_by_name ON clusters (name)          WHERE phase <> 'deleted';
CREATE INDEX        clusters_image   ON clusters (image)          WHERE phase <> 'deleted';
CREATE INDEX        clusters_created ON clusters (created);
CREATE INDEX        clusters_phase   ON clusters (phase, created);
CREATE INDEX        clusters_project ON clusters (project, created);
CREATE INDEX        clusters_owner   ON clusters (owner, created);

CREATE TABLE nodes (
    n       INTEGER PRIMARY KEY,
    cluster TEXT    NOT NULL REFERENCES clusters (id),
    name    TEXT    NOT NULL CHECK (name <> ''),
    owner   TEXT    NOT NULL,
    project TEXT    NOT NULL,
    idx     INTEGER NOT NULL,
    phase   TEXT    NOT NULL,
    machine TEXT,
    rev     INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    doc     TEXT    NOT NULL,
    UNIQUE (cluster, name)
) STRICT;
-- A machine fills at most one node ...
CREATE UNIQUE INDEX nodes_machine ON nodes (machine) WHERE machine IS NOT NULL AND phase <> 'gone';

CREATE TABLE machines (
    n        INTEGER PRIMARY KEY,
    id       TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    owner    TEXT    NOT NULL,
    project  TEXT    NOT NULL,
    provider TEXT    NOT NULL,
    class    TEXT    NOT NULL,
    phase    TEXT    NOT NULL,
    cluster  TEXT REFERENCES clusters (id),
    node     TEXT,
    rev      INTEGER NOT NULL,
    sum      INTEGER NOT NULL,
    doc      TEXT    NOT NULL,
    CHECK ((cluster IS NULL) = (node IS NULL)),
    CHECK ((phase IN ('allocated', 'active')) = (cluster IS NOT NULL))
) STRICT;
-- ... and a node is filled by at most one machine.
CREATE UNIQUE INDEX machines_node  ON machines (cluster, node) WHERE cluster IS NOT NULL;
CREATE INDEX        machines_phase ON machines (phase);
CREATE INDEX        machines_class ON machines (class);

CREATE TABLE users (
    name    TEXT    PRIMARY KEY CHECK (name <> ''),
    owner   TEXT    NOT NULL,
    project TEXT    NOT NULL,
    uid     INTEGER NOT NULL UNIQUE,
    rev     INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    doc     TEXT    NOT NULL
) STRICT;
CREATE TABLE members (
    project TEXT NOT NULL,
    owner   TEXT NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    PRIMARY KEY (project, owner)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_owner ON members (owner);
-- Every UID ever given, so that none is given to somebody else later.
CREATE TABLE uids (
    uid     INTEGER PRIMARY KEY,
    owner   TEXT    NOT NULL,
    project TEXT    NOT NULL,
    given   INTEGER NOT NULL
) STRICT;
CREATE INDEX uids_owner ON uids (owner);

CREATE TABLE tokens (
    id      TEXT    PRIMARY KEY CHECK (id <> ''),
    owner   TEXT    NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    project TEXT    NOT NULL,
    hash    BLOB    NOT NULL UNIQUE,
    note    TEXT    NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER
) STRICT;
CREATE INDEX tokens_owner ON tokens (owner, created);

CREATE TABLE secrets (
    cluster TEXT    NOT NULL REFERENCES clusters (id),
    name    TEXT    NOT NULL CHECK (name <> ''),
    owner   TEXT    NOT NULL,
    project TEXT    NOT NULL,
    sum     INTEGER NOT NULL,
    value   BLOB    NOT NULL,
    PRIMARY KEY (cluster, name)
) STRICT;

CREATE TABLE joins (
    hash    BLOB    PRIMARY KEY,
    owner   TEXT    NOT NULL,
    project TEXT    NOT NULL,
    machine TEXT    NOT NULL UNIQUE,
    cluster TEXT    NOT NULL,
    node    TEXT    NOT NULL,
    attempt INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;
CREATE INDEX joins_cluster ON joins (cluster);
CREATE INDEX joins_expires ON joins (expires);

CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    actor   TEXT    NOT NULL,
    owner   TEXT    NOT NULL,
    project TEXT    NOT NULL,
    cluster TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    object  TEXT    NOT NULL,
    "from"  TEXT    NOT NULL,
    "to"    TEXT    NOT NULL,
    text    TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_cluster ON audit (cluster, seq) WHERE cluster <> '';
CREATE INDEX audit_project ON audit (project, seq);
CREATE INDEX audit_owner   ON audit (owner, seq);
CREATE INDEX audit_kind    ON audit (kind, seq);

-- +goose StatementBegin
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
-- +goose StatementEnd
-- REPLACE deletes without firing the trigger above.
-- +goose StatementBegin
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'the audit is append-only');
END;
-- +goose StatementEnd

CREATE TABLE cleans (
    n       INTEGER PRIMARY KEY,
    owner   TEXT    NOT NULL,
    project TEXT    NOT NULL,
    machine TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    doc     TEXT    NOT NULL
) STRICT;
CREATE INDEX cleans_machine ON cleans (machine, n);

CREATE TABLE durations (
    n       INTEGER PRIMARY KEY,
    owner   TEXT    NOT NULL,
    project TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    class   TEXT    NOT NULL,
    image   TEXT    NOT NULL,
    took    INTEGER NOT NULL,
    at      INTEGER NOT NULL
) STRICT;
CREATE INDEX durations_key ON durations (kind, class, image, n);

CREATE TABLE meta (
    key     TEXT PRIMARY KEY,
    owner   TEXT NOT NULL,
    project TEXT NOT NULL,
    value   TEXT NOT NULL
) STRICT;
