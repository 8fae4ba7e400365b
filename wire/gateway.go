package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// Gateway is how the gateway is reached.
type Gateway struct {
	Address string   `json:"address,omitempty" doc:"Where it listens: ADDRESS:PORT; absent: the server has no gateway"`
	HostKey string   `json:"host_key,omitempty" doc:"Its public key: type and base64, as in known_hosts"`
	Names   []string `json:"names,omitempty" doc:"Host names that its host certificate is for"`
	// HostAuthority is there without a gateway as well.
	HostAuthority string           `json:"host_authority,omitempty" doc:"Public key of the site's authority, which signs the host keys of all doors under the names of clusters and of the gateway"`
	Gateways      []GatewayProcess `json:"gateways,omitempty" doc:"Gateways that are processes of their own"`
	User          string           `json:"user,omitempty" doc:"As whom the caller comes to the gateways: their user name; absent: who came without a token has none"`
	Doors         []muster.Door    `json:"doors" doc:"straight, jump, plain"`
}

// TicketRequest asks to be let through the straight door, once.
type TicketRequest struct {
	Target string `json:"target" maxLength:"200" doc:"CLUSTER[.NODE][+PROJECT]: names or the ID of the cluster; without NODE the head"`
	Client string `json:"client,omitempty" maxLength:"64" doc:"ADDRESS:PORT from where the connection will come, as the client sees it; absent: anywhere"`
}

// Ticket lets one connection through the straight door, which must begin before it expires.
type Ticket struct {
	Address string    `json:"address" doc:"Where to connect to; its host may be that of the API (0.0.0.0, ::)"`
	Secret  string    `json:"secret,omitempty" doc:"To be sent first, as MUSTER-TICKET/1 SECRET and a line feed; absent: the connection from client is let through as it is"`
	Node    string    `json:"node" doc:"Where it leads"`
	Expires time.Time `json:"expires"`
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
