package qmp

// Migration is QEMU's answer to query-migrate: how far the state of a machine is that is written or read.
type Migration struct {
	Status string `json:"status"`
	Error  string `json:"error-desc"`
	RAM    struct {
		Transferred int64 `json:"transferred"` // bytes
	} `json:"ram"`
}
