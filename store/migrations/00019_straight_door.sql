-- +goose Up

-- By which token a session of the straight door was opened; '' for those that a key opened.
ALTER TABLE gateway_sessions ADD COLUMN token TEXT NOT NULL DEFAULT '';
