package network

import (
	"fmt"
	"strings"
)

// The rules keep no state: what may go each way is told by ports alone, so a
// machine cannot fill a table of connections, and nothing is lost when they
// are replaced. Messages between the machines of a cluster cross a bridge and
// never meet them.
//
// Declaring and flushing keeps the sets as they are: who is in them is not
// known to a server that has just started.
const rulesText = `
table inet muster {
	set proxied { type ipv4_addr; }
	set routed { type ipv4_addr; }
	set licences { type inet_service; }
	set virtual { type ipv4_addr; }
	chain input { type filter hook input priority 0; policy drop; }
	chain output { type filter hook output priority 0; policy drop; }
	chain forward { type filter hook forward priority 0; policy drop; }
	chain machine { }
}
flush table inet muster
table inet muster {
	chain input {
		iifname "lo" accept
		iifname "m*" ip saddr @MANAGEMENT@ ip daddr @GATEWAY@ jump machine
	}
	chain machine {
		tcp dport @AGENT@ accept
		tcp dport @PROXY@ ip saddr @proxied accept
		tcp dport @licences accept
		tcp dport { @VOLUMES@ } ip saddr @virtual accept
		udp dport @TIME@ ip saddr @virtual accept
		tcp sport 22 tcp flags & (syn | ack) != syn accept
		icmp type { echo-reply, destination-unreachable, time-exceeded } accept
	}
	chain output {
		oifname "lo" accept
		oifname "m*" tcp sport { @AGENT@, @PROXY@ } tcp flags & (syn | ack) != syn accept
		oifname "m*" tcp sport @licences tcp flags & (syn | ack) != syn accept
		oifname "m*" tcp sport { @VOLUMES@ } ip daddr @virtual tcp flags & (syn | ack) != syn accept
		oifname "m*" udp sport @TIME@ ip daddr @virtual accept
		oifname "m*" tcp dport 22 accept
		oifname "m*" tcp flags & rst == rst accept
		oifname "m*" icmp type { echo-request, destination-unreachable, time-exceeded } accept
	}
	chain forward {
		iifname "m*" oifname "up0" ip saddr @routed ip daddr != { @PRIVATE@ } accept
		iifname "up0" oifname "m*" ip daddr @routed accept
	}
}
`

// private lists what must not be reached through any egress: networks that are
// somebody's inside, this host's own among them.
func private() []string {
	return []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
		"172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3",
	}
}

func ruleset() string {
	return strings.NewReplacer(
		"@MANAGEMENT@", Management().String(),
		"@GATEWAY@", Gateway().String(),
		"@AGENT@", fmt.Sprint(AgentPort),
		"@PROXY@", fmt.Sprint(ProxyPort),
		"@VOLUMES@", fmt.Sprintf("%d, %d-%d", VolumePort, FirstOwnVolumePort, LastOwnVolumePort),
		"@TIME@", fmt.Sprint(TimePort),
		"@PRIVATE@", strings.Join(private(), ", "),
	).Replace(rulesText)
}
