-- +goose Up

-- What HPL showed of a cluster. doc is the result in JSON and never changes; the
-- columns beside it are for finding it. rate is the median over launches, best the
-- fastest launch, both in flop/s.
CREATE TABLE hpl (
    n       INTEGER PRIMARY KEY,
    id      TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    owner   TEXT    NOT NULL CHECK (owner <> ''),
    project TEXT    NOT NULL CHECK (project <> ''),
    cluster TEXT    NOT NULL REFERENCES clusters (id),
    class   TEXT    NOT NULL,
    rate    REAL    NOT NULL,
    best    REAL    NOT NULL,
    made    INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    doc     TEXT    NOT NULL
) STRICT;
CREATE INDEX hpl_made         ON hpl (made, n);
CREATE INDEX hpl_cluster      ON hpl (cluster, made, n);
CREATE INDEX hpl_cluster_rate ON hpl (cluster, rate, n);
CREATE INDEX hpl_class        ON hpl (class, made, n);
CREATE INDEX hpl_class_rate   ON hpl (class, rate, n);
