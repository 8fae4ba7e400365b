package main

import (
	"errors"
	"net"
	"os"
	"runtime/pprof"

	"github.com/spf13/cobra"

	"github.com/muster-hpc/muster/provider/fake"
)

// fakeAgentsCommand runs the agents of a server's machines that pretend in a
// process of their own, for measurements: what the server costs can then be
// told from what they cost.
func fakeAgentsCommand() *cobra.Command {
	profile := ""
	cmd := &cobra.Command{
		Use: "fake-agents SOCKET", Short: "Run the agents of simulated machines", Hidden: true,
		Long: `Run the agents of a server that was started with --fake N --fake-agents SOCKET,
until that server ends or this command is interrupted.`,
		Example: "  muster fake-agents /tmp/m/agents.sock",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := (&net.Dialer{}).DialContext(cmd.Context(), "unix", args[0])
			if err != nil {
				return err
			}
			return profiled(profile, func() error { return fake.RunAgents(cmd.Context(), conn) })
		},
	}
	cmd.Flags().StringVar(&profile, "cpu-profile", "", "write a CPU profile to this file")
	return cmd
}

// profiled runs f and writes to a file, if one is named, where its time went.
func profiled(path string, f func() error) error {
	if path == "" {
		return f()
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return errors.Join(err, out.Close())
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, out.Close())
}
