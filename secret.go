package muster

// Names under which a cluster's secrets are kept. They are made with the
// cluster, read when its nodes are configured, and removed with it.
const (
	SecretHostCA     = "ssh-host-ca" // signs the host keys of its nodes (pki.SSHAuthority)
	SecretUserCA     = "ssh-user-ca" // signs short-lived user keys (pki.SSHAuthority)
	SecretMungeKey   = "munge-key"   // 128 raw bytes
	SecretRootKey    = "root-key"    // OpenSSH private key of root, where users are root
	SecretDBPassword = "db-password" // of the accounting database
)

// SecretHostKey is the name of the OpenSSH private host key of one node.
func SecretHostKey(node string) string { return "ssh-host-key/" + node }
