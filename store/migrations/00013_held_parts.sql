-- +goose Up

-- Parts of hosts that machines in use have. Machines of different sets are made of the same
-- parts; the key keeps two of them from being in use at once.
CREATE TABLE held_parts (
    part    TEXT PRIMARY KEY CHECK (part <> ''),
    machine TEXT NOT NULL REFERENCES machines (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX held_parts_machine ON held_parts (machine);
