package store

import (
	"crypto/subtle"
	"database/sql"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// GatewayProcess is a gateway that is a process of its own.
type GatewayProcess struct {
	Name    string
	Hash    [32]byte // of its token
	Hosts   []string // names of its host certificate
	Created time.Time
}

// PutGateway registers a gateway. EConflict: the name is taken.
func (tx *Tx) PutGateway(g GatewayProcess) error {
	if err := tx.gatewayAdmin(true); err != nil {
		return err
	}
	list, err := tx.gateways(`name = ?`, g.Name)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		return muster.Errorf(muster.EConflict, "there is a gateway %s", g.Name).Because(muster.ReasonNameTaken).WithHint("choose another name, or remove it: muster gateway remove %s", g.Name)
	}
	_, err = tx.s.exec(`INSERT INTO gateways (name, hash, hosts, created) VALUES (?, ?, ?, ?)`, g.Name, g.Hash[:], strings.Join(g.Hosts, " "), nanos(g.Created))
	return err
}

// RemoveGateway takes a gateway's token away.
func (tx *Tx) RemoveGateway(name string) error {
	if err := tx.gatewayAdmin(true); err != nil {
		return err
	}
	r, err := tx.s.exec(`DELETE FROM gateways WHERE name = ?`, name)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return muster.Errorf(muster.ENotFound, "there is no gateway %.64q", name).Because(muster.ReasonNoSuchObject).WithHint("`muster gateway list` lists them")
}

// Gateways are those that are registered, by name.
func (tx *Tx) Gateways() ([]GatewayProcess, error) {
	if err := tx.gatewayAdmin(false); err != nil {
		return nil, err
	}
	return tx.gateways(`1 ORDER BY name`)
}

func (tx *Tx) gatewayAdmin(change bool) error {
	if err := tx.s.usable(change); err != nil {
		return err
	}
	if !tx.who.Admin || change && tx.who.ReadOnly {
		return muster.Errorf(muster.EForbidden, "gateways are for administrators").Because(muster.ReasonAdminOnly).WithHint("ask your administrator")
	}
	return nil
}

// gatewayOf is whose token has this hash; "" for nobody's.
func (tx *Tx) gatewayOf(hash [32]byte) (string, error) {
	list, err := tx.gateways(`hash = ?`, hash[:])
	if err != nil || len(list) != 1 || subtle.ConstantTimeCompare(list[0].Hash[:], hash[:]) != 1 {
		return "", err
	}
	return list[0].Name, nil
}

func (tx *Tx) gateways(cond string, args ...any) (list []GatewayProcess, _ error) {
	return list, tx.s.each(func(r *sql.Rows) error {
		var g GatewayProcess
		var hash []byte
		var hosts string
		var created int64
		if err := r.Scan(&g.Name, &hash, &hosts, &created); err != nil {
			return err
		}
		copy(g.Hash[:], hash)
		g.Created, g.Hosts = fromNanos(created), strings.Fields(hosts)
		list = append(list, g)
		return nil
	}, `SELECT name, hash, hosts, created FROM gateways WHERE `+cond, args...)
}
