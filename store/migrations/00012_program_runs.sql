-- +goose Up

-- Runs of programs on clusters. doc is the run in JSON; the columns beside it are for finding
-- it. The programs themselves are among the objects.
CREATE TABLE program_runs (
    n         INTEGER PRIMARY KEY,
    id        TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    owner     TEXT    NOT NULL CHECK (owner <> ''),
    project   TEXT    NOT NULL CHECK (project <> ''),
    cluster   TEXT    NOT NULL REFERENCES clusters (id),
    program   TEXT    NOT NULL CHECK (program <> ''),
    state     TEXT    NOT NULL,
    submitted INTEGER NOT NULL,
    sum       INTEGER NOT NULL,
    doc       TEXT    NOT NULL
) STRICT;
CREATE INDEX program_runs_submitted ON program_runs (submitted, n);
CREATE INDEX program_runs_program   ON program_runs (program, submitted, n);
CREATE INDEX program_runs_kept      ON program_runs (project, program, submitted, n);
CREATE INDEX program_runs_cluster   ON program_runs (cluster, submitted, n);
