package local

// ScopeCommand is for tests that run it where systemd is init.
func ScopeCommand(name string) []string { return scopeCommand(name) }
