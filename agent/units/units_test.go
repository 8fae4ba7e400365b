package units

import (
	"strings"
	"testing"
	"time"
)

// Both kinds of nodes run the same program in the same way, and differ in what they
// say they differ in.
func TestFiles(t *testing.T) {
	t.Parallel()
	slice := Kind{Stop: 5 * time.Second, Journal: 32, Manager: []string{"LogTarget=journal"}, Journald: []string{"Audit=no"}}.Files()
	whole := Kind{Stop: 20 * time.Second, Journal: 64, Scratch: true}.Files()
	const agent, target = Folder + "/muster-agent.service", Folder + "/" + Target
	for _, f := range []map[string]string{slice, whole} {
		for name, has := range map[string]string{
			agent: "\nExecStart=/usr/lib/muster/muster-agent\n", target: "\nWants=muster-agent.service",
			"usr/lib/systemd/system.conf.d/50-muster.conf":   "\nDefaultLimitMEMLOCK=infinity\n",
			"usr/lib/systemd/journald.conf.d/50-muster.conf": "\nStorage=volatile\n",
		} {
			if !strings.Contains(f[name], has) || strings.Contains(f[name], "\n\n\n") || !strings.HasSuffix(f[name], "\n") {
				t.Errorf("%s: %q", name, f[name])
			}
		}
	}
	if whole[agent] != slice[agent] || strings.Contains(slice[agent], "After=") {
		t.Errorf("the agent waits, or differs: %s\n%s", whole[agent], slice[agent])
	}
	if !strings.Contains(slice[agent], "\nRestart=always\n") || !strings.Contains(slice[agent], "\nWatchdogSec=60s\nWatchdogSignal=SIGKILL\n") {
		t.Errorf("an agent that ended or was stopped stays so: %s", slice[agent])
	}
	for f, has := range map[string]string{
		whole["usr/lib/systemd/system.conf.d/50-muster.conf"]:   "DefaultTimeoutStopSec=20s\n",
		slice["usr/lib/systemd/system.conf.d/50-muster.conf"]:   "DefaultTimeoutStopSec=5s\nLogTarget=journal\n",
		slice["usr/lib/systemd/journald.conf.d/50-muster.conf"]: "RuntimeMaxUse=32M\nAudit=no\n",
		whole[target]:             "Wants=muster-agent.service muster-scratch.service\n",
		whole[Folder+"/"+Scratch]: "\nExecStart=/usr/lib/muster/muster-agent scratch --order /etc/muster/scratch.json\n",
	} {
		if !strings.Contains(f, has) {
			t.Errorf("no %q in %q", has, f)
		}
	}
	if _, ok := slice[Folder+"/"+Scratch]; ok {
		t.Error("a slice of a host has disks of its own")
	}
}
