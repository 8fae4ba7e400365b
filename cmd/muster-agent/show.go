package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/agent"
	"github.com/muster-hpc/muster/wire"
)

// show prints what the person on the node wants to know, from the files that
// the running agent keeps. There is no secret in it.
func show(f files, out io.Writer) error {
	dir := agent.Dir(f.state)
	b, err := dir.Load(statusFile)
	switch {
	case muster.CodeOf(err) == muster.ENotFound:
		return muster.Errorf(muster.ENotFound, "the agent has not run on this node yet").
			WithHint("systemctl status muster-agent").Wrap(err)
	case err != nil:
		return muster.Errorf(muster.EUnavailable, "the agent's state cannot be read").WithHint("run this as root").Wrap(err)
	}
	s, err := statusDoc.Decode("the agent's state", b)
	if muster.CodeOf(err) == muster.EConflict {
		return err
	}
	if err != nil {
		return muster.Errorf(muster.ECorrupt, "the agent's state is damaged").WithHint("systemctl restart muster-agent").Wrap(err)
	}
	var c *wire.NodeConfig
	if b, err := dir.Load("config.json"); err == nil {
		c = new(wire.NodeConfig)
		if json.Unmarshal(b, c) != nil {
			c = nil
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	showStatus(w, s, time.Now())
	if c != nil {
		showConfig(w, c)
	}
	return w.Flush()
}

func showStatus(w io.Writer, s agent.Status, now time.Time) {
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("agent", "%s, running since %s", s.Version, when(s.Started, now))
	row("machine", "%s, attempt %d, trust %s", s.Machine, s.Attempt, s.Trust)
	row("state", "%s, generation %d in force", s.State, s.Generation)
	row("server", "%s", s.Server)
	if s.LastContact.IsZero() {
		row("last contact", "never")
	} else {
		row("last contact", "%s", when(s.LastContact, now))
	}
	if s.Trouble != "" {
		row("trouble", "%s", s.Trouble)
	}
	if !s.Expires.IsZero() {
		row("credential", "until %s", s.Expires.Local().Format(time.DateTime))
	}
	row("journal", "%d lines wait, %d were dropped", s.Waiting, s.Dropped)
	for _, c := range s.Checks {
		verdict := "ok"
		if !c.OK {
			verdict = "FAILED"
		}
		row("check", "%s: %s", c.Name, strings.TrimSpace(verdict+" "+c.Text))
	}
	for _, st := range s.Stages {
		row("stage", "%s after %.2f s", st.Name, st.At.Sub(s.Stages[0].At).Seconds())
	}
}

func showConfig(w io.Writer, c *wire.NodeConfig) {
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("", "")
	row("cluster", "%s (%s), project %s", c.ClusterName, c.Cluster, c.Project)
	if !c.Expires.IsZero() {
		row("ends", "%s", c.Expires.Local().Format(time.DateTime))
	}
	row("node", "%s, %s, head is %s", c.Node, c.Role, c.HeadNode)
	row("configuration", "generation %d", c.Generation)
	row("address", "%s on %s, management on %s", c.Address, c.Interface, c.Management)
	row("nodes", "%d", len(c.Hosts))
	row("scheduler may use", "%d cores, %d MiB", c.Cores, c.Memory>>20)
	var users []string
	for _, u := range c.Users {
		users = append(users, fmt.Sprintf("%s (%d)", u.Name, u.UID))
	}
	row("users", "%s", strings.Join(users, ", "))
	if c.Slurm == nil {
		row("slurm", "none")
	} else {
		row("slurm", "%s, server %s", c.Slurm.Version, c.Slurm.Server)
	}
	for _, h := range c.Hosts {
		if h.Name == c.Node && h.Hold {
			row("held", "the scheduler may not use this node yet")
		}
	}
	for _, f := range c.Files {
		row("file", "%s", f.Path)
	}
	for _, m := range c.Mounts {
		row("mount", "%s on %s", m.Source, m.Target)
	}
}

// when writes a time with how long ago that was.
func when(t, now time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.Local().Format(time.DateTime), now.Sub(t).Round(time.Second))
}
