package configure

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// Where sshd looks: one file per user each.
const (
	principals     = "/etc/ssh/principals/"
	authorizedKeys = "/etc/ssh/authorized_keys.d/"
	hostKey        = "/etc/ssh/ssh_host_ed25519_key"
	hostCert       = "/etc/ssh/ssh_host_ed25519_key-cert.pub"
	insideKey      = "/etc/ssh/muster_inside_key"
	insideCert     = "/etc/ssh/muster_inside_key-cert.pub"
	userCA         = "/etc/ssh/muster_user_ca.pub"
)

// ssh lets users in by certificates and by their own keys, and makes every
// node known to every other.
func (c *Configurer) ssh(cfg *wire.NodeConfig) error {
	// What systemd leaves while it boots keeps everybody but root out, and in
	// a node nothing may ever take it away again.
	if err := c.files.remove("/run/nologin"); err != nil {
		return err
	}
	certificate, inside := cfg.SSH.HostCertificate, cfg.SSH.DoorCertificate != "" // older servers send one for both
	files := []wire.File{{Path: hostKey, Mode: 0o600, Content: line(cfg.SSH.HostKey)}}
	if inside {
		certificate = cfg.SSH.DoorCertificate
		files = append(files, wire.File{Path: insideKey, Mode: 0o600, Content: line(cfg.SSH.InsideKey)},
			wire.File{Path: insideCert, Mode: 0o644, Content: line(cfg.SSH.InsideCertificate)})
	}
	files = append(files,
		wire.File{Path: hostCert, Mode: 0o644, Content: line(certificate)},
		wire.File{Path: userCA, Mode: 0o644, Content: line(cfg.SSH.UserCA)},
		wire.File{Path: "/etc/ssh/sshd_config.d/10-muster.conf", Mode: 0o644, Content: sshdConfig(inside, c.files.exists("/usr/lib/openssh/sshd-session"), c.files.exists("/usr/lib/locale/locale-archive"))})
	for _, f := range files {
		if err := c.writeFor(sshService, f); err != nil {
			return err
		}
	}
	// These are read for each connection.
	return c.plainFiles(none, []wire.File{
		{Path: "/etc/ssh/ssh_known_hosts", Mode: 0o644, Content: knownHosts(cfg)},
		{Path: "/etc/ssh/ssh_config.d/10-muster.conf", Mode: 0o644, Content: sshConfig(inside)},
	})
}

// access says whose certificates and keys let in, and as whom. It is read for each
// connection.
func (c *Configurer) access(cfg *wire.NodeConfig) error {
	list, root := sshUsers(cfg)
	list = append(list, root...)
	if u := cfg.Prober; u != nil && c.files.exists(probeProgram) { // by certificates alone
		list = append(list, wire.File{Path: principals + u.Name, Mode: 0o644, Content: u.Name + cfg.SSH.PrincipalSuffix + "\n"})
	}
	return errors.Join(c.plainFiles(none, list), c.rootKey(cfg))
}

// line ends a text with exactly one newline.
func line(s string) string { return strings.TrimSpace(s) + "\n" }

// sshdConfig is read before the distribution's own settings, and the first
// value counts. Releases with penalties (from 9.8, those with sshd-session)
// must not apply them: all users come from one address, the server's.
func sshdConfig(inside, penalties, locales bool) string {
	s := `# Written by Muster. Changes here do not last.
HostKey ` + hostKey + `
HostCertificate ` + hostCert + `
`
	if inside {
		s += "HostKey " + insideKey + "\nHostCertificate " + insideCert + "\n"
	}
	s += `TrustedUserCAKeys ` + userCA + `
AuthorizedPrincipalsFile ` + principals + `%u
AuthorizedKeysFile .ssh/authorized_keys ` + authorizedKeys + `%u
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitEmptyPasswords no
PermitRootLogin prohibit-password
GSSAPIAuthentication no
UseDNS no
LoginGraceTime 60
MaxStartups 200:30:1000
MaxSessions 100
AcceptEnv COLORTERM NO_COLOR
PrintMotd no
PrintLastLog no
`
	if penalties {
		s += "PerSourcePenalties no\n"
	}
	if locales {
		// In an image without any, each shell would complain of those of the user's own computer.
		s += "AcceptEnv LANG LC_*\n"
	}
	return s
}

// sshConfig is for clients on the node. Of a node's two certificates they ask for the one that their
// cluster's authority signed.
func sshConfig(inside bool) string {
	s := `# Written by Muster. Changes here do not last.
Host *
    GSSAPIAuthentication no
    UpdateHostKeys no
`
	if inside {
		s += "    HostKeyAlgorithms ^ecdsa-sha2-nistp256-cert-v01@openssh.com\n"
	}
	return s
}

// knownHosts lets the cluster's own authority vouch for its nodes, and for
// nothing else.
func knownHosts(cfg *wire.NodeConfig) string {
	var names []string
	for _, h := range cfg.Hosts {
		names = append(names, h.Name)
		if cfg.Domain != "" {
			names = append(names, h.Name+"."+cfg.Domain)
		}
		names = append(names, h.Address)
	}
	return "@cert-authority " + strings.Join(names, ",") + " " + line(cfg.SSH.HostCA)
}

// sshUsers are the files that say whose certificates and keys let a user in, and root.
func sshUsers(cfg *wire.NodeConfig) (users, ofRoot []wire.File) {
	root := []string{"root" + cfg.SSH.PrincipalSuffix}
	var files []wire.File
	var rootKeys []string
	for _, u := range cfg.Users {
		p := u.Name + cfg.SSH.PrincipalSuffix
		if cfg.UserRoot {
			root = append(root, p)
			rootKeys = append(rootKeys, u.Keys...)
		}
		files = append(files,
			wire.File{Path: principals + u.Name, Mode: 0o644, Content: p + "\n"},
			wire.File{Path: authorizedKeys + u.Name, Mode: 0o644, Content: keyLines(u.Keys)})
	}
	if cfg.UserRoot {
		rootKeys = append(rootKeys, cfg.SSH.RootPublicKey)
	}
	slices.Sort(root)
	return files, []wire.File{
		{Path: principals + "root", Mode: 0o644, Content: strings.Join(slices.Compact(root), "\n") + "\n"},
		{Path: authorizedKeys + "root", Mode: 0o644, Content: keyLines(rootKeys)},
	}
}

func keyLines(keys []string) string {
	var b strings.Builder
	for _, k := range keys {
		if k = strings.TrimSpace(k); k != "" {
			b.WriteString(k + "\n")
		}
	}
	return b.String()
}

// rootKey lets root go from node to node, on images where users are root.
func (c *Configurer) rootKey(cfg *wire.NodeConfig) error {
	if !cfg.UserRoot || cfg.SSH.RootKey == "" {
		return nil
	}
	if err := os.MkdirAll(c.files.at("/root/.ssh"), 0o700); err != nil {
		return err
	}
	return c.plainFiles(none, []wire.File{
		{Path: "/root/.ssh/id_ed25519", Mode: 0o600, Content: line(cfg.SSH.RootKey)},
		{Path: "/root/.ssh/id_ed25519.pub", Mode: 0o644, Content: line(cfg.SSH.RootPublicKey)},
	})
}
