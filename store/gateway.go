package store

import (
	"database/sql"
	"slices"
	"strconv"

	"github.com/muster-hpc/muster"
)

// keptSessions is how many sessions at the gateway are kept: the newest.
const keptSessions = 100_000

// GatewayFilter narrows a list of sessions. Zero values ask for everything.
type GatewayFilter struct {
	User    string
	Cluster muster.ClusterID
	Open    bool   // only those that last
	Limit   int    // the newest so many; 0: all
	After   string // only what comes after this cursor
}

func noGatewaySession(id muster.GatewaySessionID) *muster.Error {
	return muster.Errorf(muster.ENotFound, "there is no session %.64q at the gateway", id).Because(muster.ReasonNoSuchObject).
		WithHint("`muster gateway sessions` lists them")
}

func gatewayRecord(s muster.GatewaySession) record {
	return record{kind: "gateway-session", owner: s.User, project: s.Project}
}

// BeginGatewaySession records a session before anything of it passes, and the use of its key.
// Only Muster itself may. EConflict: the ID is taken.
func (tx *Tx) BeginGatewaySession(s muster.GatewaySession) error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if err := authorize(tx.who, write, gatewayRecord(s), noGatewaySession(s.ID)); err != nil {
		return err
	}
	if s.ID == "" || s.User == "" || s.Fingerprint == "" && s.Token == "" || s.Began.IsZero() {
		return defect("a session needs an ID, a user, a key or a token, and a beginning")
	}
	if err := checkText(s.From, s.Node, s.Login, s.ClusterName); err != nil {
		return err
	}
	r, err := tx.s.exec(`INSERT INTO gateway_sessions (id, owner, project, cluster, cluster_name, node, login, fingerprint, certificate, serial, token, source, door, began, gateway, why, text, received, sent)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', 0, 0)`,
		string(s.ID), s.User, s.Project, string(s.Cluster), s.ClusterName, s.Node, s.Login, s.Fingerprint, cleanText(s.Certificate), int64(s.Serial), s.Token, s.From, string(s.Door), nanos(s.Began), s.Gateway)
	if err != nil {
		return err
	}
	n, err := r.LastInsertId()
	if err != nil {
		return err
	}
	if _, err := tx.s.exec(`DELETE FROM gateway_sessions WHERE n IN (SELECT n FROM gateway_sessions WHERE n <= ? ORDER BY n LIMIT 50)`, n-keptSessions); err != nil {
		return err
	}
	if s.Fingerprint == "" {
		return nil
	}
	return tx.keyUsed(s)
}

// GatewayBytes records how many bytes passed so far in a session that lasts.
func (tx *Tx) GatewayBytes(id muster.GatewaySessionID, received, sent int64) error {
	if err := tx.mayGateway(); err != nil {
		return err
	}
	_, err := tx.s.exec(`UPDATE gateway_sessions SET received = ?, sent = ? WHERE id = ? AND ended IS NULL`, received, sent, string(id))
	return err
}

// EndGatewaySession records the end of a session, once: Ended, End, Text and the bytes.
func (tx *Tx) EndGatewaySession(s muster.GatewaySession) error {
	if err := tx.mayGateway(); err != nil {
		return err
	}
	_, err := tx.s.exec(`UPDATE gateway_sessions SET ended = ?, why = ?, text = ?, received = ?, sent = ? WHERE id = ? AND ended IS NULL`,
		nanos(s.Ended), string(s.End), cleanText(s.Text), s.Received, s.Sent, string(s.ID))
	return err
}

func (tx *Tx) mayGateway() error {
	if err := tx.s.usable(true); err != nil {
		return err
	}
	if !isSystem(tx.who) {
		return defect("only the gateway records sessions")
	}
	return nil
}

// GatewaySession returns one session.
func (tx *Tx) GatewaySession(id muster.GatewaySessionID) (muster.GatewaySession, error) {
	list, err := tx.gatewaySessions(`id = ?`, string(id))
	if err != nil {
		return muster.GatewaySession{}, err
	}
	if len(list) == 0 {
		return muster.GatewaySession{}, noGatewaySession(id)
	}
	return list[0], nil
}

// GatewaySessions returns the sessions that the actor may see, the newest first: all for an
// administrator, one's own for a user.
func (tx *Tx) GatewaySessions(f GatewayFilter) ([]muster.GatewaySession, error) {
	w := &where{cond: "n > 0"} // by its key, not through the whole table
	if !tx.who.Admin {
		w.and("owner = ?", tx.who.Name)
	}
	w.is("owner", f.User).is("cluster", string(f.Cluster))
	if f.Open {
		w.and("ended IS NULL")
	}
	if f.After != "" {
		n, err := strconv.ParseInt(f.After, 10, 64)
		if err != nil {
			return nil, muster.Errorf(muster.EInvalid, "%.40q is not a place in this list", f.After).Because(muster.ReasonBadValue).
				WithHint("send what next of the page before says, or nothing")
		}
		w.and("n < ?", n)
	}
	w.by("n DESC", f.Limit)
	return tx.gatewaySessions(w.cond, w.args...)
}

// GatewayCursor is where a session stands in the list of sessions, the newest first.
func (tx *Tx) GatewayCursor(id muster.GatewaySessionID) (string, error) {
	var n int64
	err := tx.s.one([]any{&n}, `SELECT n FROM gateway_sessions WHERE id = ?`, string(id))
	return strconv.FormatInt(n, 10), err
}

func (tx *Tx) gatewaySessions(cond string, args ...any) ([]muster.GatewaySession, error) {
	var list []muster.GatewaySession
	err := tx.s.each(func(r *sql.Rows) error {
		var s muster.GatewaySession
		var began, serial int64
		var ended sql.NullInt64
		if err := r.Scan(&s.ID, &s.User, &s.Project, &s.Cluster, &s.ClusterName, &s.Node, &s.Login, &s.Fingerprint, &s.Certificate, &serial, &s.Token, &s.From, &s.Door,
			&began, &ended, &s.Gateway, &s.End, &s.Text, &s.Received, &s.Sent); err != nil {
			return err
		}
		s.Began, s.Ended, s.Serial = fromNanos(began), fromNull(ended), uint64(serial)
		list = append(list, s)
		return nil
	}, `SELECT id, owner, project, cluster, cluster_name, node, login, fingerprint, certificate, serial, token, source, door, began, ended, gateway, why, text, received, sent FROM gateway_sessions WHERE `+cond, args...)
	return slices.DeleteFunc(list, func(s muster.GatewaySession) bool { return !allowed(tx.who, read, gatewayRecord(s)) }), err
}
