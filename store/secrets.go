package store

import (
	"database/sql"
	"errors"

	"github.com/muster-hpc/muster"
)

// Secrets returns all secrets of a cluster by their names. Only Muster itself may ask.
func (tx *Tx) Secrets(cluster muster.ClusterID) (map[string][]byte, error) {
	if err := authorize(tx.who, read, record{kind: "secret"}, noCluster(string(cluster))); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	err := tx.s.each(func(rows *sql.Rows) error {
		var name string
		var sum int64
		var value []byte
		if err := rows.Scan(&name, &sum, &value); err != nil {
			return err
		}
		if sumOf(value) != sum {
			return corrupt("a secret of "+string(cluster), errors.New("the checksum does not match"))
		}
		out[name] = value
		return nil
	}, `SELECT name, sum, value FROM secrets WHERE cluster = ?`, string(cluster))
	return out, err
}
