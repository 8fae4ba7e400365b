package local

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Workroom bounds what programs of others take of this host that the server itself
// runs, such as the scripts of packages while an image is built.
type Workroom struct {
	groups *groups
	limits limits
	next   atomic.Int64
}

// workroomTasks is how many tasks one piece of work may have.
const workroomTasks = 4096

// OpenWorkroom finds the control groups of this host for work of an instance, and
// removes what a killed server left in them.
func OpenWorkroom(ctx context.Context, instance string) (*Workroom, error) {
	h, err := readHost("/")
	if err != nil {
		return nil, err
	}
	w := &Workroom{limits: limits{Mems: h.mems, Memory: max(h.memory/2, minMemory), Pids: workroomTasks}}
	// Half of the host's CPUs, as of its memory: the rest is not slowed by any build.
	for _, c := range h.cpus[len(h.cpus)-max(1, len(h.cpus)/2):] {
		w.limits.CPUs = append(w.limits.CPUs, c.id)
	}
	if w.groups, err = hostGroups(ctx, "muster-work-"+instance); err != nil {
		return nil, err
	}
	left, err := w.groups.list()
	if err != nil {
		return nil, err
	}
	for _, id := range left {
		if err := w.leave(ctx, id); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Bound puts a process into a group of its own, with all that it will start. leave ends
// what is left of them.
func (w *Workroom) Bound(pid int) (leave func() error, err error) {
	id := fmt.Sprintf("work-%d", w.next.Add(1))
	if err := w.groups.create(id, &w.limits, 0); err != nil {
		return nil, fmt.Errorf("bound the work: %w", err)
	}
	leave = func() error { return w.leave(context.Background(), id) }
	if err := w.groups.enter(id, pid); err != nil {
		_ = leave()
		return nil, fmt.Errorf("bound the work: %w", err)
	}
	return leave, nil
}

func (w *Workroom) leave(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := w.groups.kill(ctx, id); err != nil {
		return err
	}
	return w.groups.remove(ctx, id)
}

// Close removes the groups.
func (w *Workroom) Close() error { return w.groups.close(context.Background()) }
