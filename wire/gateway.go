package wire

import "github.com/muster-hpc/muster"

// Gateway is how the gateway is reached.
type Gateway struct {
	Address string   `json:"address,omitempty" doc:"Where it listens: ADDRESS:PORT; absent: the server has no gateway"`
	HostKey string   `json:"host_key,omitempty" doc:"Its public key: type and base64, as in known_hosts"`
	Names   []string `json:"names,omitempty" doc:"Host names that its host certificate is for"`
	// HostAuthority is there without a gateway as well.
	HostAuthority string           `json:"host_authority,omitempty" doc:"Public key of the site's authority, which signs the host keys of all doors under the names of clusters and of the gateway"`
	Gateways      []GatewayProcess `json:"gateways,omitempty" doc:"Gateways that are processes of their own"`
	Doors         []muster.Door    `json:"doors" doc:"jump, plain"`
}

// GatewayQuery narrows a list of sessions at the gateway.
type GatewayQuery struct {
	User    string
	Cluster string
	Open    bool
	Page
}

// GatewaySessionList is the reply to a listing of sessions at the gateway, the newest first.
type GatewaySessionList struct {
	Sessions []muster.GatewaySession `json:"sessions"`
	More
}
