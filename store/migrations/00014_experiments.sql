-- +goose Up

-- Experiments, and the launches that they made. doc is the record in JSON; the columns beside it
-- are for finding it.
CREATE TABLE experiments (
    n       INTEGER PRIMARY KEY,
    id      TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    owner   TEXT    NOT NULL CHECK (owner <> ''),
    project TEXT    NOT NULL CHECK (project <> ''),
    name    TEXT    NOT NULL CHECK (name <> ''),
    state   TEXT    NOT NULL,
    created INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    doc     TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX experiments_name ON experiments (project, name);
CREATE INDEX experiments_created ON experiments (created, n);

CREATE TABLE experiment_launches (
    experiment TEXT    NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
    n          INTEGER NOT NULL,
    sum        INTEGER NOT NULL,
    doc        TEXT    NOT NULL,
    PRIMARY KEY (experiment, n)
) STRICT;
