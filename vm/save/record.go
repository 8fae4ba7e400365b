package save

import (
	"slices"

	"github.com/muster-hpc/muster/internal/document"
)

// recordDoc is a Record as it is kept.
const recordDoc document.Kind[Record] = "vm-save/1"

// Phase is how far a save or a resume is.
type Phase string

// Phases.
const (
	// Stopping, Saving and Verifying lead to Ending; what fails in them leads to GoingOn.
	Stopping  Phase = "stopping"
	Saving    Phase = "saving"
	Verifying Phase = "verifying"
	// Ending: every state is whole, and the machines are being ended. There is no way back but by Loading.
	Ending Phase = "ending"
	// Saved: nothing of the cluster runs.
	Saved Phase = "saved"
	// Loading leads to Starting; what fails in it leads to Unloading, and that to Saved.
	Loading   Phase = "loading"
	Unloading Phase = "unloading"
	// Starting: the states are void, and the machines go on. GoingOn is the same for a save that failed.
	Starting Phase = "starting"
	GoingOn  Phase = "going-on"
	// Erasing: the machines run, and void states are erased. Live: that is done.
	Erasing Phase = "erasing"
	Live    Phase = "live"
)

// Rests reports whether nothing is to be done until somebody asks for something.
func (p Phase) Rests() bool { return p == Saved || p == Live || p == "" }

// Record is where a sequence is.
type Record struct {
	Phase Phase  `json:"phase"`
	Nodes []Node `json:"nodes"`
	// Failed is why the last save or resume came to nothing.
	Failed string `json:"failed,omitempty"`
}

// Node is one machine of the cluster.
type Node struct {
	Name  string `json:"name"`
	Head  bool   `json:"head,omitempty"`
	State *State `json:"state,omitempty"` // nil: it is not saved
	// Lost: it ended by itself while it should have gone on.
	Lost bool `json:"lost,omitempty"`
}

// Encode is the record as it is kept.
func (r Record) Encode() ([]byte, error) { return recordDoc.Encode(&r) }

// DecodeRecord reads what Encode wrote; what names it in errors.
func DecodeRecord(what string, b []byte) (Record, error) { return recordDoc.Decode(what, b) }

// Bytes are those of all states that there are.
func (r Record) Bytes() (sum int64) {
	for _, n := range r.Nodes {
		if n.State != nil {
			sum += n.State.Size
		}
	}
	return sum
}

// Begin is the record of a cluster that lives and is to be saved.
func Begin(nodes []Node) Record {
	r := Record{Phase: Stopping}
	for _, n := range nodes {
		r.Nodes = append(r.Nodes, Node{Name: n.Name, Head: n.Head})
	}
	return r
}

func (r Record) clone() Record {
	r.Nodes = slices.Clone(r.Nodes)
	return r
}
