package store

import (
	"context"
	"database/sql"
	"net/url"
	"strconv"
	"time"
)

// conn is one connection to the database with the statements it has prepared.
// It is used by one goroutine at a time.
//
// Statements run without the caller's context: interrupting SQLite in the
// middle of a statement rolls back the whole transaction, and with it the
// changes of others in the same group.
type conn struct {
	c     *sql.Conn
	stmts map[string]*sql.Stmt
}

// maxStatements bounds the cache of a connection. Query texts are few; only
// lists of phases and projects vary.
const maxStatements = 256

func newConn(ctx context.Context, db *sql.DB) (*conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{c: c, stmts: map[string]*sql.Stmt{}}, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.Close() // the connection goes too
	}
	return c.c.Close()
}

func (c *conn) prepare(query string) (*sql.Stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	if len(c.stmts) >= maxStatements {
		for q, s := range c.stmts {
			_ = s.Close() // nothing depends on it: it is prepared again
			delete(c.stmts, q)
		}
	}
	s, err := c.c.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	c.stmts[query] = s
	return s, nil
}

func (c *conn) exec(query string, args ...any) (sql.Result, error) {
	s, err := c.prepare(query) //nolint:sqlclosecheck // kept for the next call; closed with the connection
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.Background(), args...)
}

func (c *conn) query(query string, args ...any) (*sql.Rows, error) {
	s, err := c.prepare(query) //nolint:sqlclosecheck // kept for the next call; closed with the connection
	if err != nil {
		return nil, err
	}
	return s.QueryContext(context.Background(), args...)
}

// source is the driver's address of a database file. Options that must hold
// for every connection are part of it.
func source(path string, busy time.Duration, write bool) string {
	q := url.Values{}
	q.Add("_pragma", "busy_timeout("+strconv.FormatInt(busy.Milliseconds(), 10)+")")
	if write {
		q.Add("_pragma", "journal_mode(WAL)")
		q.Add("_pragma", "synchronous(FULL)")
		q.Add("_pragma", "foreign_keys(1)")
		q.Add("_pragma", "journal_size_limit(16777216)")
		q.Add("_pragma", "temp_store(2)")    // what undoes a statement needs no file: it dies with the process
		q.Add("_pragma", "secure_delete(1)") // deleted secrets leave no bytes behind
	} else {
		q.Add("_pragma", "query_only(1)")
	}
	q.Add("_pragma", "cell_size_check(1)")
	u := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}
	return u.String()
}
