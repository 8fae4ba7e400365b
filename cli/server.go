package cli

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

func (a *app) serverInfo() *cobra.Command {
	return &cobra.Command{
		Use: "server", Short: "Show the server, and as whom you use it", Args: exactly(),
		Example: `  muster server
  MUSTER_SERVER=https://muster.example.org:7777 muster server`,
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			s, err := k.Server(c.Context())
			if err != nil {
				return err
			}
			health, err := k.Health(c.Context())
			if err != nil {
				health = wire.Health{Status: "unknown", Checks: []wire.HealthPart{{Name: "server", Text: err.Error()}}}
			}
			return a.print(s, func(w io.Writer) {
				shared := ""
				if s.Oversubscribed {
					shared = "yes: machines share cores"
				}
				fields(w, "server", k.Address().String(), "version", s.Version, "up", since(s.Started, time.Now()), "health", healthText(health),
					"instance", s.Instance, "listens", s.Listen, "you", youText(s), "projects", strings.Join(s.Projects, " "),
					"clusters", fmt.Sprint(s.Clusters), "machines", fmt.Sprintf("%d, %d free", s.Machines, s.Free), "oversubscribed", shared, "epoch", epochText(s))
			})
		},
	}
}

// youText is as whom the server is used.
func youText(s wire.Server) string {
	switch {
	case s.ReadOnly: // its rights are those of the token, not of the user
		return s.You + " (read-only token: it reads the whole site and changes nothing)"
	case s.Admin:
		return s.You + " (administrator)"
	}
	return s.You
}

// epochText is empty for a site that was never restored, which need not know of epochs.
func epochText(s wire.Server) string {
	switch {
	case s.Superseded != "":
		return fmt.Sprintf("%d; %s", s.Epoch, s.Superseded)
	case s.Epoch > 1:
		return fmt.Sprint(s.Epoch)
	}
	return ""
}

func healthText(h wire.Health) string {
	text := h.Status
	for _, c := range h.Checks {
		if !c.OK || c.Text != "" {
			text += "; " + c.Name + ": " + c.Text
		}
	}
	return text
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: exactly(),
		Example: `  muster version -o json`,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				System  string `json:"system"`
			}{a.env.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return a.print(v, func(w io.Writer) { fmt.Fprintf(w, "muster %s (%s, %s)\n", v.Version, v.Go, v.System) })
		},
	}
}
