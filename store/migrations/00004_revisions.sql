-- +goose Up

-- Who knows the records as of one revision asks for what changed since.
CREATE INDEX nodes_rev    ON nodes    (cluster, rev);
CREATE INDEX machines_rev ON machines (rev);
