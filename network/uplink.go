package network

// natLink is the way out for clusters with egress "nat".
type natLink struct{}

func removeUplink(string) error { return nil }
