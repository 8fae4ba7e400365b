-- +goose Up

-- Records of which there are few: projects, maintenance windows, courses, templates. doc is
-- the record in JSON; the columns beside it are for finding it.
CREATE TABLE objects (
    kind    TEXT    NOT NULL,
    id      TEXT    NOT NULL CHECK (id <> ''),
    owner   TEXT    NOT NULL,
    project TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    sum     INTEGER NOT NULL,
    doc     TEXT    NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT;
CREATE UNIQUE INDEX objects_name ON objects (kind, project, name);
