package muster

// ExperimentVirtual is one program on machines as they are, and on virtual machines of the same machines, untuned
// and tuned, under otherwise the same factors.
type ExperimentVirtual struct {
	Program string `json:"program"`
	// Factors are the other ones that vary.
	Factors map[string]string `json:"factors,omitempty"`
	// Machine, Untuned and Tuned are its cells; nil: there is none, or it has no figure.
	Machine *int `json:"machine_cell,omitempty"`
	Untuned *int `json:"untuned_cell,omitempty"`
	Tuned   *int `json:"tuned_cell,omitempty"`
	// UntunedSpeed and TunedSpeed are how many times as fast as the machine they are.
	UntunedSpeed *ExperimentRatio `json:"untuned_speed,omitempty"`
	TunedSpeed   *ExperimentRatio `json:"tuned_speed,omitempty"`
	// Published is what reports say of tuned virtual machines.
	Published string `json:"published"`
	// Emulated: QEMU emulated their processors. Nothing of it says anything of speed.
	Emulated bool `json:"emulated,omitempty"`
}
