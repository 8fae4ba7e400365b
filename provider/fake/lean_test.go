package fake

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-hpc/muster/wire"
)

func TestLeanDecodingKeepsTheNodesOwnHost(t *testing.T) {
	t.Parallel()
	c := wire.NodeConfig{Cluster: "c-1", Node: "n0042", HeadNode: "n0001", Users: []wire.Account{{Name: "alice", Keys: []string{"a", "b"}}}}
	for i := range 100 {
		c.Hosts = append(c.Hosts, wire.Host{Name: fmt.Sprintf("n%04d", i), Address: "10.0.0.1", Hold: i == 42})
	}
	var p buffers
	for _, head := range []bool{false, true} {
		c.Head = head
		b, err := json.Marshal(wire.JoinReply{Protocol: 1, Config: &c})
		if err != nil {
			t.Fatal(err)
		}
		var got wire.JoinReply
		if err := p.decode(strings.NewReader(string(b)), 1<<20, &got); err != nil {
			t.Fatal(err)
		}
		want := c
		if !head {
			want.Hosts = c.Hosts[42:43]
		}
		if !reflect.DeepEqual(*got.Config, want) {
			t.Errorf("head %t: %+v", head, *got.Config)
		}
		if err := p.decode(strings.NewReader(string(b)), 100, &got); err == nil {
			t.Error("an answer of any length is read")
		}
	}
}
