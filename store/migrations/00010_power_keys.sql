-- +goose Up

-- The key K_G of an IPMI controller, beside the password.
CREATE TABLE power_keys (
    machine TEXT    PRIMARY KEY REFERENCES registrations (id) ON DELETE CASCADE,
    sum     INTEGER NOT NULL,
    value   BLOB    NOT NULL
) STRICT;
