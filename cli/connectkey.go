package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// While the server is away, a gateway that is a process of its own gives tickets of the straight door itself, to users whose
// keys are on record. It is asked by ssh, which knows agents, security keys and the user's configuration.

const (
	// keyTime is how long that may take: somebody may have to touch a key, or type its passphrase.
	keyTime = time.Minute
	// connectingVariable says to a command that ssh runs that it was run for a ticket itself.
	connectingVariable = "MUSTER_CONNECTING"
	refusedStatus      = 1 // of the gateway's command: it says why on stderr
	longestReply       = 4096
)

// away reports whether the server did not answer.
func away(err error) bool {
	reason := muster.ReasonOf(err)
	return reason == muster.ReasonServerUnreachable || reason == muster.ReasonNoAnswer
}

// straightByKey connects with a node through the straight door of a gateway that knows the user's key. identity is the file
// of the key; "": what ssh takes.
func (a *app) straightByKey(ctx context.Context, target, identity string) (*os.File, error) {
	if a.env.getenv(connectingVariable) != "" {
		return nil, muster.Errorf(muster.EInvalid, "ssh asks for the way to the gateway itself").Because(muster.ReasonContradiction).
			WithHint("leave 'muster connect' out of what your ssh configuration says of the gateway's host")
	}
	known, _ := a.recall()
	dir, err := a.keyDir()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	asking, cancel := context.WithTimeout(ctx, keyTime)
	defer cancel()
	err = muster.Errorf(muster.EUnavailable, "this computer knows no gateway that works without the server").Because(muster.ReasonNoGateway).
		WithHint("try again when the server is back")
	for _, p := range known.places(a.apiHost()) {
		var t wire.Ticket
		if t, err = a.askGateway(asking, dir, known, p, target, identity); err != nil {
			if muster.CodeOf(err) == muster.EConflict {
				return nil, err
			}
			continue
		}
		dial, stop := context.WithTimeout(ctx, connectTime)
		defer stop()
		t.Address = p.address() // by which it was reached just now
		return withSecret(dial, t, p.host)
	}
	return nil, err
}

// askGateway has a gateway give a ticket. EConflict: it says why not.
func (a *app) askGateway(ctx context.Context, dir string, known knownGateways, p gatewayPlace, target, identity string) (t wire.Ticket, _ error) {
	hosts := filepath.Join(dir, "known_hosts")
	if err := os.WriteFile(hosts, []byte(known.knownHosts(p)), 0o600); err != nil {
		return t, err
	}
	args := []string{"-T", "-a", "-x", "-n", "-p", p.port, "-l", known.User}
	for _, o := range []string{
		"HostKeyAlias=" + p.name, "UserKnownHostsFile=" + hosts, "GlobalKnownHostsFile=/dev/null", "KnownHostsCommand=none", "StrictHostKeyChecking=yes",
		"UpdateHostKeys=no", "PreferredAuthentications=publickey", "ControlPath=none", "ClearAllForwardings=yes", "PermitLocalCommand=no", "RemoteCommand=none",
		"ConnectTimeout=5", "LogLevel=ERROR",
	} {
		args = append(args, "-o", o)
	}
	args = append(append(args, identityOptions(identity)...), "--", p.host, "ticket "+target)
	cmd := exec.CommandContext(ctx, "ssh", args...)
	cmd.Env = append(os.Environ(), connectingVariable+"=1")
	var said, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &complaint
	err := cmd.Run()
	text := strings.TrimSpace(complaint.String())
	text = clean(text[strings.LastIndexByte(text, '\n')+1:])
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == refusedStatus:
		return t, muster.Errorf(muster.EConflict, "%s", strings.TrimPrefix(text, "muster: ")).Because(muster.ReasonNoAccess).WithHint("the server does not answer; this is what the gateway knows")
	case err != nil:
		return t, muster.Errorf(muster.EUnavailable, "the server does not answer, and gateway %s gives no ticket: %s", p.address(), first(text, err.Error())).Because(muster.ReasonServerUnreachable).
			WithHint("it takes keys that are on record ('muster key add'): name yours with --identity FILE").Wrap(err)
	case said.Len() > longestReply || json.Unmarshal(said.Bytes(), &t) != nil || t.Secret == "":
		return t, muster.Errorf(muster.EUnavailable, "what answers at %s gives no tickets", p.address()).Because(muster.ReasonServerUnreachable).WithHint("ask your administrator")
	}
	return t, nil
}

// identityOptions are those of ssh for the key of a user; none: ssh takes what it finds.
func identityOptions(file string) []string {
	if file == "" {
		return nil
	}
	return []string{"-i", file, "-o", "IdentitiesOnly=yes"}
}

// doorName is the name of a node at the gateways, which its host certificate has.
func doorName(cluster, node string) string {
	project, name, named := strings.Cut(cluster, "/")
	if !named {
		project, name = "", cluster
	}
	if node != "" && node != "head" {
		name += "." + node
	}
	if project != "" {
		name += "+" + project
	}
	return name
}

// sshByKey are the options by which ssh logs in to a node with the user's own key while the server is away.
func (a *app) sshByKey(dir string, l login, known knownGateways) ([]string, error) {
	name := doorName(l.cluster, l.node)
	if strings.ContainsAny(name, " \t\r\n,*?!@|#[]") {
		return nil, muster.Errorf(muster.EInvalid, "%.80q is not a node of a cluster", name).Because(muster.ReasonBadValue).WithHint("write CLUSTER or PROJECT/CLUSTER, and the name of a node")
	}
	line := knownLine("@cert-authority ", name, known.HostAuthority)
	if err := os.WriteFile(filepath.Join(dir, "known_hosts"), []byte(line), 0o600); err != nil {
		return nil, err
	}
	proxy := quote(a.self()) + " connect "
	if l.identity != "" {
		proxy += "--identity " + quote(l.identity) + " "
	}
	return append([]string{
		"-F", "/dev/null",
		"-o", "ProxyUseFdpass=yes",
		"-o", "ProxyCommand=" + strings.ReplaceAll(proxy+quote(name), "%", "%%"),
		"-o", "UserKnownHostsFile=" + filepath.Join(dir, "known_hosts"),
		"-o", "GlobalKnownHostsFile=/dev/null",
		"-o", "StrictHostKeyChecking=yes",
		"-o", "HostKeyAlias=" + name,
		"-o", "LogLevel=ERROR",
	}, identityOptions(l.identity)...), nil
}
