package flow

import (
	"context"
	"time"

	"github.com/ti-mo/conntrack"
	"github.com/ti-mo/netfilter"
)

// Watcher hears what happens to connections. Its methods are called one after the other.
type Watcher interface {
	// Present has all connections that are there, at the beginning and after events were lost.
	Present(list []Flow)
	// Began says that a connection has come by its way.
	Began(f Flow)
	// Ended says that one is gone, with what passed in all.
	Ended(f Flow)
}

const (
	eventBuffer = 4 << 20
	// settles is how long the last packets of a connection that both sides have closed may take.
	settles = 2 * time.Second
	again   = time.Second
)

// Watch reports until ctx ends.
func (k *Kernel) Watch(ctx context.Context, w Watcher, failed func(error)) {
	for ctx.Err() == nil {
		if err := k.watch(ctx, w); err != nil && ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// watch reports until events are lost.
func (k *Kernel) watch(ctx context.Context, w Watcher) error {
	c, err := k.tracker()
	if err != nil {
		return err
	}
	_ = c.SetReadBuffer(eventBuffer) // as much as this host allows
	events := make(chan conntrack.Event, 1024)
	errs, err := c.Listen(events, 1, []netfilter.NetlinkGroup{netfilter.GroupCTNew, netfilter.GroupCTUpdate, netfilter.GroupCTDestroy})
	if err != nil {
		_ = c.Close()
		return err
	}
	defer func() {
		closed := make(chan struct{})
		go func() {
			_ = c.Close()
			close(closed)
		}()
		for { // the reader may wait for us to take an event, or an error
			select {
			case <-events:
			case <-errs:
			case <-closed:
				return
			}
		}
	}()
	list, err := k.Flows() // after listening has begun: nothing falls between
	if err != nil {
		return err
	}
	w.Present(list)
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-errs:
			return err
		case e := <-events:
			k.event(e, w)
		}
	}
}

func (k *Kernel) event(e conntrack.Event, w Watcher) {
	if e.Flow == nil {
		return
	}
	f, ours := k.flow(e.Flow)
	switch {
	case !ours:
	case e.Type == conntrack.EventDestroy:
		w.Ended(f)
	case e.Type == conntrack.EventNew:
		w.Began(f)
	case over(e.Flow): // the kernel would keep it for minutes
		time.AfterFunc(settles, func() { _ = k.Forget(f.Way) })
	}
}

// States of a TCP connection in the table (linux/netfilter/nf_conntrack_tcp.h).
const (
	stateTimeWait = 7
	stateClose    = 8
)

// over reports whether both sides have closed a connection, or one has broken it off.
func over(f *conntrack.Flow) bool {
	t := f.ProtoInfo.TCP
	return t != nil && (t.State == stateTimeWait || t.State == stateClose)
}
