package daemon

// AgentsURL is where the agents of a provider's machines find the server.
func (s *Server) AgentsURL(provider string) string { return s.endpoints[provider].url() }
