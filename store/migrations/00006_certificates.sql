-- +goose Up

-- What was measured and signed. body is the envelope in canonical form, and
-- never changes; the columns beside it are for finding it. node and machine are
-- empty for the manifest of a cluster. superseded is the certificate that took
-- its place.
CREATE TABLE certificates (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    owner      TEXT    NOT NULL CHECK (owner <> ''),
    project    TEXT    NOT NULL CHECK (project <> ''),
    cluster    TEXT    NOT NULL REFERENCES clusters (id),
    node       TEXT    NOT NULL,
    machine    TEXT    NOT NULL,
    class      TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    level      TEXT    NOT NULL,
    verdict    TEXT    NOT NULL,
    certified  INTEGER NOT NULL,
    made       INTEGER NOT NULL,
    expires    INTEGER NOT NULL,
    superseded TEXT,
    digest     TEXT    NOT NULL,
    sum        INTEGER NOT NULL,
    body       BLOB    NOT NULL
) STRICT;
CREATE INDEX certificates_made    ON certificates (made, n);
CREATE INDEX certificates_expires ON certificates (expires);
CREATE INDEX certificates_cluster ON certificates (cluster, made, n);
CREATE INDEX certificates_machine ON certificates (machine, made, n) WHERE machine <> '';
CREATE INDEX certificates_class   ON certificates (class, made, n);
