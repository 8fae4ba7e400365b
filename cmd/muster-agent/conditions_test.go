package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/muster-hpc/muster/wire"
)

// TestMain makes the test program be the agent itself for the ranks that a test starts.
func TestMain(m *testing.M) {
	if os.Getenv("MUSTER_TEST_IS_AGENT") != "" {
		os.Exit(command(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// One of the ranks of a launch prints the conditions of all of them: mpirun passes on what
// several print in pieces.
func TestConditionsAreToldByOneRank(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rank := func(number int, at string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0], "conditions")
		cmd.Env = append(os.Environ(), "MUSTER_TEST_IS_AGENT=1", "OMPI_COMM_WORLD_SIZE=2", fmt.Sprintf("OMPI_COMM_WORLD_RANK=%d", number),
			wire.MeetVariable+"=word", wire.MeetAtVariable+"="+at)
		return cmd
	}
	var outs [2]bytes.Buffer
	first, second := rank(0, host+":"+port), rank(1, "127.0.0.1:"+port) // another host than where they meet
	for i, cmd := range []*exec.Cmd{first, second} {
		cmd.Stdout, cmd.Stderr = &outs[i], os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, cmd := range []*exec.Cmd{first, second} {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if outs[1].Len() > 0 {
		t.Errorf("both ranks print: %q", outs[1].String())
	}
	if got := hosts(t, &outs[0]); !slices.Equal(got, []string{host, host}) {
		t.Errorf("%q", got)
	}
	// Without a place to meet it is told as it was before there was one.
	alone := rank(1, "")
	alone.Stderr = os.Stderr
	out, err := alone.Output()
	if got := hosts(t, bytes.NewReader(out)); err != nil || !slices.Equal(got, []string{host}) {
		t.Errorf("%q %v", got, err)
	}
}

func hosts(t *testing.T, from io.Reader) (list []string) {
	t.Helper()
	d := json.NewDecoder(from)
	for {
		var c wire.NodeConditions
		switch err := d.Decode(&c); err {
		case nil:
			list = append(list, c.Host)
		case io.EOF:
			return list
		default:
			t.Fatal(err)
		}
	}
}
