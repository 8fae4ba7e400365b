package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"syscall"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/api/client"
	"github.com/muster-hpc/muster/cli"
	"github.com/muster-hpc/muster/daemon/gatewayproc"
	"github.com/muster-hpc/muster/gateway"
	"github.com/muster-hpc/muster/internal/connlimit"
)

// serveGateway runs a gateway that is a process of its own. What needs root is done first: listening,
// and entering the namespace of nodes; then it has no capability any more, whoever started it. The first signal drains it, the second ends it.
func serveGateway(stop context.Context, k *client.Client, o cli.GatewayOptions) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if o.Drain <= 0 {
		o.Drain = time.Second
	}
	l, err := (&net.ListenConfig{}).Listen(stop, "tcp", o.Listen)
	if err != nil {
		return muster.Errorf(muster.EUnavailable, "cannot listen on %s", o.Listen).Because(muster.ReasonAddressInUse).WithHint("choose another --listen ADDRESS:PORT").Wrap(err)
	}
	defer l.Close()
	c := gatewayproc.Config{
		Server: k, Listener: l, State: o.State, Drain: o.Drain, Log: log, Limits: gateway.Limits{Idle: o.Idle, Longest: o.Longest},
		Places: connlimit.Limits{Total: 8192, PerAddress: 1024, PerName: 512},
	}
	if o.Netns != "" {
		inside, err := gatewayproc.InNamespace(o.Netns)
		if err != nil {
			return muster.Errorf(muster.EUnavailable, "the network namespace %s cannot be entered", o.Netns).Because(muster.ReasonBadValue).WithHint("start as root, and name one of /run/netns").Wrap(err)
		}
		c.Dial = inside
	}
	if err := become(o.User, o.State); err != nil {
		return err
	}
	if err := giveUpPrivileges(); errors.Is(err, errors.ErrUnsupported) {
		log.Warn("gateway: capabilities are kept: this build cannot give them up")
	} else if err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.WithoutCancel(stop))
	defer end()
	go func() {
		<-stop.Done()
		again := make(chan os.Signal, 1)
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		select {
		case <-again:
			end()
		case <-ctx.Done():
		}
	}()
	return gatewayproc.Run(ctx, stop, c)
}

// become makes this process one of another user, for good, and gives them the folder.
func become(name, state string) error {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	if name == "" {
		return nil
	}
	bad := muster.Errorf(muster.EInvalid, "cannot run as user %s", name).Because(muster.ReasonBadValue).WithHint("start as root, and name a user of this host")
	u, err := user.Lookup(name)
	if err != nil {
		return bad.Wrap(err)
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	if uidErr != nil || gidErr != nil {
		return bad
	}
	if err := os.Lchown(state, uid, gid); err != nil {
		return bad.Wrap(err)
	}
	for _, step := range []func() error{
		func() error { return syscall.Setgroups([]int{}) },
		func() error { return syscall.Setresgid(gid, gid, gid) },
		func() error { return syscall.Setresuid(uid, uid, uid) },
	} {
		if err := step(); err != nil {
			return bad.Wrap(err)
		}
	}
	return nil
}
