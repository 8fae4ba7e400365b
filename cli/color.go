package cli

import "github.com/muster-hpc/muster"

// paint colours a word of state, on a terminal whose user did not ask for
// plain text (NO_COLOR).
func (a *app) paint(stream any, phase muster.ClusterPhase) string {
	word := string(phase)
	if a.env.getenv("NO_COLOR") != "" || a.env.getenv("TERM") == "dumb" || !a.env.terminal(stream) {
		return word
	}
	color := ""
	switch phase {
	case muster.ClusterReady:
		color = "32"
	case muster.ClusterFailed:
		color = "31"
	case muster.ClusterQueued, muster.ClusterReserved, muster.ClusterBuilding, muster.ClusterValidating, muster.ClusterPausing, muster.ClusterPaused, muster.ClusterFrozen, muster.ClusterDeleting:
		color = "33"
	default:
		return word
	}
	return "\x1b[" + color + "m" + word + "\x1b[0m"
}
