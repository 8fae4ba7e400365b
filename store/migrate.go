package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"

	"github.com/muster-hpc/muster"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to the newest that this program knows. A store
// that was written by a newer program is refused: guessing at columns that one
// does not know is how records are lost.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	current, err := schemaVersion(ctx, db)
	if err != nil {
		return err
	}
	if current > newest {
		return muster.Errorf(muster.EConflict, "the database has schema version %d, this program supports up to %d", current, newest).Because(muster.ReasonOtherVersion).
			WithHint("run the newer muster that wrote it, or restore a copy made before the upgrade")
	}
	if current == newest {
		return nil
	}
	_, err = p.Up(ctx)
	return err
}

// schemaVersion is the version of the store's schema, 0 for an empty file.
func schemaVersion(ctx context.Context, db *sql.DB) (int64, error) {
	var table string
	err := db.QueryRowContext(ctx, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name = 'goose_db_version'`).Scan(&table)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var v int64
	err = db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&v)
	return v, err
}
