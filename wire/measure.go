package wire

import "github.com/muster-hpc/muster"

// MeasureRequest asks for a measurement of a ready cluster, or ends one.
type MeasureRequest struct {
	Level string `json:"level,omitempty" doc:"How much is measured: quick (the default) or full" enum:"quick,full,"`
	What  string `json:"what,omitempty" doc:"What is run: the probe, for certificates, if left out; or hpl" enum:"hpl,"`
	For   string `json:"for,omitempty" doc:"How long hpl may take, such as 5m (the default) or 1h"`
	Files string `json:"files,omitempty" doc:"How much level full writes to shared files in all: a size such as 64GiB, or memory for a tenth more than the nodes have, so that none of it comes from their memory; default 256MiB"`
	Nodes string `json:"nodes,omitempty" doc:"Set of the compute nodes to measure, such as n[01-04]; all of them if left out"`
	Force bool   `json:"force,omitempty" doc:"Measure although jobs run: both are slowed down, and the figures are not certified"`
	Stop  bool   `json:"stop,omitempty" doc:"End the benchmark run under way instead; certificates stay as they are"`
}

// MeasureReply answers it: the measurement that began, or was ended.
type MeasureReply struct {
	Cluster     muster.ClusterID   `json:"cluster"`
	Name        string             `json:"name"`
	Measurement muster.Measurement `json:"measurement"`
}
