package nodeconf

import (
	"slices"
	"strings"

	"github.com/muster-hpc/muster/wire"
)

// licenceHosts are the hosts of licence servers, each once, as a node finds them. A name of
// the cluster's own stays that of its node.
func (s *Shared) licenceHosts(gateway string) (out []wire.Host) {
	if gateway == "" {
		return nil
	}
	for _, l := range s.in.Licences {
		_, own := s.index[l.Host]
		own = own || s.all.Domain != "" && strings.HasSuffix(l.Host, "."+s.all.Domain)
		if !own && !slices.ContainsFunc(out, func(h wire.Host) bool { return h.Name == l.Host }) {
			out = append(out, wire.Host{Name: l.Host, Address: gateway})
		}
	}
	return out
}
