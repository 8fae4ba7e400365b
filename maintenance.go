package muster

import "time"

// MaintenanceWindow is a time in which machines are kept free of tenants.
type MaintenanceWindow struct {
	ID       string      `json:"id"`
	Machines []MachineID `json:"machines"`
	From     time.Time   `json:"from"`
	// Until is when they are given to tenants again. Zero: not by itself.
	Until time.Time `json:"until,omitzero"`
	Why   string    `json:"why,omitempty"`
	By    string    `json:"by"` // who entered it
}
