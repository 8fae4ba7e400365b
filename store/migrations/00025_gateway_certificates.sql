-- +goose Up

-- The certificate by which the user of a session came: its key ID, and its serial number, whose 64 bits
-- are read as signed ones; '' and 0 for those of a key.
ALTER TABLE gateway_sessions ADD COLUMN certificate TEXT NOT NULL DEFAULT '';
ALTER TABLE gateway_sessions ADD COLUMN serial INTEGER NOT NULL DEFAULT 0;
