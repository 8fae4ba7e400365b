-- +goose Up

-- A token that reads everything and changes nothing, for what watches the site.
ALTER TABLE tokens ADD COLUMN read_only INTEGER NOT NULL DEFAULT 0;
