-- +goose Up

-- Data that outlives machines and, if wanted, clusters. cluster is the one that
-- alone may use it, or that it was made for; NULL for data that several mount.
CREATE TABLE volumes (
    n       INTEGER PRIMARY KEY,
    id      TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    owner   TEXT    NOT NULL CHECK (owner <> ''),
    project TEXT    NOT NULL CHECK (project <> ''),
    name    TEXT    NOT NULL CHECK (name <> ''),
    kind    TEXT    NOT NULL,
    phase   TEXT    NOT NULL,
    cluster TEXT REFERENCES clusters (id),
    created INTEGER NOT NULL,
    rev     INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    doc     TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX volumes_name    ON volumes (project, name) WHERE phase <> 'deleted';
-- A cluster has one home and one scheduler's state, and nobody else has them.
CREATE UNIQUE INDEX volumes_held    ON volumes (cluster, kind) WHERE phase = 'ready' AND cluster IS NOT NULL;
CREATE INDEX        volumes_living  ON volumes (created)       WHERE phase <> 'deleted';
CREATE INDEX        volumes_by_name ON volumes (name)          WHERE phase <> 'deleted';
CREATE INDEX        volumes_phase   ON volumes (phase, created);
CREATE INDEX        volumes_project ON volumes (project, created);
CREATE INDEX        volumes_owner   ON volumes (owner, created);
CREATE INDEX        volumes_cluster ON volumes (cluster, created) WHERE cluster IS NOT NULL;
