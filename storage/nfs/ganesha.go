package nfs

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// lease is for how long a client keeps its locks without a word of it, and for
// which a server that was started again waits for clients to claim what they had. It
// waits less when all have done so.
const lease = 30 * time.Second

// mainText is the part of ganesha's configuration that needs a new process when it
// changes. NFSv4.1 over TCP on one address, and nothing else; numbers of users and
// groups as they are. Not 4.2: ganesha 4.3 answers its READ_PLUS, which Debian's kernels
// use, with zeros instead of what is in the file.
func mainText(listen netip.AddrPort, lease, grace time.Duration, recovery, exports string) string {
	return fmt.Sprintf(`# Written by Muster. Changes are lost.
NFS_CORE_PARAM {
	Protocols = 4;
	Bind_addr = %s;
	NFS_Port = %d;
	Enable_UDP = false;
	Enable_NLM = false;
	Enable_RQUOTA = false;
	RPC_Max_Connections = 10000;
}
NFSv4 {
	Minor_Versions = 1;
	Only_Numeric_Owners = true;
	Delegations = false;
	Lease_Lifetime = %d;
	Grace_Period = %d;
	RecoveryBackend = fs;
	RecoveryRoot = "%s";
}
NFS_KRB5 { Active_krb5 = false; }
LOG { Default_Log_Level = EVENT; }
%%include "%s"
`, listen.Addr(), listen.Port(), lease/time.Second, grace/time.Second, recovery, exports)
}

// exportsText is the part that can be read anew.
//
// A port below 1024 shows that it is root of the node who asks: its users could claim
// to be anybody otherwise. Attributes are asked of the file system each time, because
// machines of this host may write there, too.
//
// The clients of each are in order.
func exportsText(set []Export, numbers map[string]uint16) string {
	var b strings.Builder
	b.WriteString("# Written by Muster. Changes are lost.\n")
	for _, e := range set {
		fmt.Fprintf(&b, `EXPORT {
	Export_Id = %d;
	Path = "%s";
	Pseudo = "/%s";
	Access_Type = None;
	Protocols = 4;
	Transports = TCP;
	SecType = sys;
	Squash = No_Root_Squash;
	PrivilegedPort = true;
	Attr_Expiration_Time = 0;
	FSAL { Name = VFS; }
`, numbers[e.Name], e.Path, e.Name)
		for _, access := range []string{"RW", "RO"} {
			var list []netip.Addr
			for _, c := range e.Clients {
				if c.ReadOnly == (access == "RO") {
					list = append(list, c.Address)
				}
			}
			for _, p := range blocks(list) {
				fmt.Fprintf(&b, "\tCLIENT { Clients = %s; Access_Type = %s; Protocols = 4; Transports = TCP; SecType = sys; Squash = No_Root_Squash; PrivilegedPort = true; }\n", p, access)
			}
		}
		b.WriteString("}\n")
	}
	return b.String()
}
