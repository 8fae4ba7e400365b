package store

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/muster-hpc/muster"
)

var errTodo = muster.Errorf(muster.EInternal, "not written yet")

// Options of a store.
type Options struct {
	Clock muster.Clock
	Log   *slog.Logger
	// Fault is called at named points of a commit; an error there acts like a
	// crash: the store is dead until it is opened again. Nil in production.
	Fault func(point string) error
	// BusyTimeout is how long to wait for another program's lock. Zero: 5 s.
	BusyTimeout time.Duration
}

// DB is an open store.
type DB struct{}

// Tx is a transaction.
type Tx struct{ who muster.Actor }

// Feed delivers committed audit lines.
type Feed struct {
	C <-chan muster.Audit
}

// Stats tell how the store is.
type Stats struct{}

func Open(ctx context.Context, path string, o Options) (*DB, error) { return nil, errTodo }
func (db *DB) Close() error                                         { return errTodo }
func (db *DB) View(ctx context.Context, who muster.Actor, fn func(*Tx) error) error {
	return errTodo
}
func (db *DB) Update(ctx context.Context, who muster.Actor, fn func(*Tx) error) error {
	return errTodo
}
func (db *DB) Subscribe(buffer int) *Feed { return &Feed{} }
func (db *DB) Stats() Stats               { return Stats{} }
func (db *DB) Authenticate(ctx context.Context, hash [32]byte) (muster.Actor, error) {
	return muster.Actor{}, errTodo
}
func (db *DB) CanSee(who muster.Actor, a muster.Audit) bool { return false }
func (f *Feed) Close()                                      {}
func (f *Feed) Lost() bool                                  { return false }

func (tx *Tx) Actor() muster.Actor { return tx.who }
func (tx *Tx) AsSystem() *Tx       { return tx }
func (tx *Tx) Cluster(id muster.ClusterID) (muster.Cluster, error) {
	return muster.Cluster{}, errTodo
}
func (tx *Tx) FindCluster(ref string) (muster.Cluster, error) { return muster.Cluster{}, errTodo }
func (tx *Tx) Clusters(f ClusterFilter) ([]muster.Cluster, error) {
	return nil, errTodo
}
func (tx *Tx) PutCluster(c muster.Cluster, text string) error   { return errTodo }
func (tx *Tx) Nodes(id muster.ClusterID) ([]muster.Node, error) { return nil, errTodo }
func (tx *Tx) NodesOf(ids ...muster.ClusterID) (map[muster.ClusterID][]muster.Node, error) {
	return nil, errTodo
}
func (tx *Tx) Node(id muster.ClusterID, name string) (muster.Node, error) {
	return muster.Node{}, errTodo
}
func (tx *Tx) PutNode(n muster.Node, text string) error { return errTodo }
func (tx *Tx) Machine(id muster.MachineID) (muster.Machine, error) {
	return muster.Machine{}, errTodo
}
func (tx *Tx) Machines(f MachineFilter) ([]muster.Machine, error) { return nil, errTodo }
func (tx *Tx) PutMachine(m muster.Machine, text string) error     { return errTodo }
func (tx *Tx) User(name string) (muster.User, error)              { return muster.User{}, errTodo }
func (tx *Tx) Users() ([]muster.User, error)                      { return nil, errTodo }
func (tx *Tx) PutUser(u muster.User, text string) error           { return errTodo }
func (tx *Tx) DeleteUser(name string) error                       { return errTodo }
func (tx *Tx) NextUID() (int, error)                              { return 0, errTodo }
func (tx *Tx) PutToken(t Token) error                             { return errTodo }
func (tx *Tx) Tokens(user string) ([]Token, error)                { return nil, errTodo }
func (tx *Tx) DeleteToken(id string) error                        { return errTodo }
func (tx *Tx) Secret(cluster muster.ClusterID, name string) ([]byte, error) {
	return nil, errTodo
}
func (tx *Tx) PutSecret(cluster muster.ClusterID, name string, value []byte) error {
	return errTodo
}
func (tx *Tx) PutJoin(j Join) error                               { return errTodo }
func (tx *Tx) UseJoin(hash [32]byte, now time.Time) (Join, error) { return Join{}, errTodo }
func (tx *Tx) Audits(f AuditFilter) ([]muster.Audit, error)       { return nil, errTodo }
func (tx *Tx) Note(kind, object string, cluster muster.ClusterID, text string) error {
	return errTodo
}
func (tx *Tx) FreeSubnet() (index int, p netip.Prefix, err error) { return 0, netip.Prefix{}, errTodo }
func (tx *Tx) PutClean(r muster.CleanRecord) error                { return errTodo }
func (tx *Tx) PutDuration(kind, class, image string, d time.Duration) error {
	return errTodo
}
func (tx *Tx) Durations(kind, class, image string, limit int) ([]time.Duration, error) {
	return nil, errTodo
}
func (tx *Tx) QueuePosition(id muster.ClusterID) (int, error) { return 0, errTodo }
func (tx *Tx) ImageUsers(id muster.ImageID) ([]muster.ClusterID, error) {
	return nil, errTodo
}
func (tx *Tx) Meta(key string) (string, error) { return "", errTodo }
func (tx *Tx) SetMeta(key, value string) error { return errTodo }
