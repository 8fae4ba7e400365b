-- +goose Up

-- Who may use a cluster without being of its project: those that its record
-- lists as users. They see it and may not change it.
CREATE TABLE cluster_users (
    cluster TEXT NOT NULL REFERENCES clusters (id),
    name    TEXT NOT NULL,
    owner   TEXT NOT NULL,
    project TEXT NOT NULL,
    PRIMARY KEY (name, cluster)
) STRICT, WITHOUT ROWID;
CREATE INDEX cluster_users_cluster ON cluster_users (cluster);

INSERT OR IGNORE INTO cluster_users (cluster, name, owner, project)
SELECT c.id, u.value, c.owner, c.project FROM clusters AS c, json_each(c.doc, '$.Spec.users') AS u
WHERE c.phase <> 'deleted' AND u.type = 'text' AND u.value <> '';
