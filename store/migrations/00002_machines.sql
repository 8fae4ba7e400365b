-- +goose Up

-- The history of each machine. seq counts its events from 1; owner and project
-- are those of the cluster that an event is about, 'system' and '' where it is
-- about none.
CREATE TABLE machine_events (
    n       INTEGER PRIMARY KEY,
    machine TEXT    NOT NULL CHECK (machine <> ''),
    seq     INTEGER NOT NULL,
    owner   TEXT    NOT NULL,
    project TEXT    NOT NULL,
    cluster TEXT    NOT NULL,
    node    TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    doc     TEXT    NOT NULL,
    UNIQUE (machine, seq)
) STRICT;
CREATE INDEX machine_events_at   ON machine_events (at);
CREATE INDEX machine_events_node ON machine_events (cluster, node, n) WHERE kind = 'cluster';

-- Nodes that wait for another machine.
CREATE INDEX nodes_lost ON nodes (cluster, idx) WHERE phase IN ('fencing', 'fenced');
