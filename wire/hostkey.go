package wire

// HostKey is how the SSH server of a node is known.
type HostKey struct {
	Node  string   `json:"node"`
	Names []string `json:"names" doc:"By which users reach it: CLUSTER[.NODE], with +PROJECT, and the same with the ID"`
	Key   string   `json:"key" doc:"Public key: type and base64, as in known_hosts"`
}

// HostKeyList is the reply to a listing of host keys.
type HostKeyList struct {
	HostKeys []HostKey `json:"host_keys"`
	More
}
