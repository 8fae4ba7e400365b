package muster

// Constraints is what each machine of a request must be. Zero values ask for nothing.
type Constraints struct {
	Provider     string   `json:"provider,omitempty"`     // glob over provider names
	Architecture string   `json:"architecture,omitempty"` // amd64, arm64
	Processor    string   `json:"processor,omitempty"`    // glob over the model name
	Class        string   `json:"class,omitempty"`        // glob over class names
	Rack         string   `json:"rack,omitempty"`         // glob over rack names
	Cores        Quantity `json:"cores,omitzero"`
	Memory       Quantity `json:"memory_bytes,omitzero"`  // bytes
	Disk         Quantity `json:"disk_bytes,omitzero"`    // bytes
	NICs         Quantity `json:"nics,omitzero"`          // number of message NICs
	NICSpeed     Quantity `json:"nic_speed_bps,omitzero"` // bits/s of the fastest message NIC
	NICKind      string   `json:"nic_kind,omitempty"`     // glob: ethernet, infiniband, veth
	Accelerators Quantity `json:"accelerators,omitzero"`
	Accelerator  string   `json:"accelerator,omitempty"` // glob over accelerator models
}

// Op compares a machine's fact with a constraint.
type Op string

// Operators.
const (
	AtLeast Op = ">="
	AtMost  Op = "<="
	Exactly Op = "="
	More    Op = ">"
	Less    Op = "<"
)

// Quantity is a comparison such as ">=16" cores or ">=64GiB". The zero
// Quantity is met by everything.
type Quantity struct {
	Op    Op    `json:"op,omitempty"`
	Value int64 `json:"value,omitempty"`
}

// IsZero reports whether nothing is asked.
func (q Quantity) IsZero() bool { return q.Op == "" }

// Met reports whether a fact v satisfies q.
func (q Quantity) Met(v int64) bool {
	switch q.Op {
	case "":
		return true
	case AtLeast:
		return v >= q.Value
	case AtMost:
		return v <= q.Value
	case Exactly:
		return v == q.Value
	case More:
		return v > q.Value
	case Less:
		return v < q.Value
	}
	return false
}
