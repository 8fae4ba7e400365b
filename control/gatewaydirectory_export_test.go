package control

// DirectoriesMade is how often the directory of gateways was made.
func (s *Service) DirectoriesMade() int {
	s.directory.mu.Lock()
	defer s.directory.mu.Unlock()
	return s.directory.made
}

// KillsKept is how many sessions are to end at gateways of their own.
func (s *Service) KillsKept() (n int) {
	s.processes.mu.Lock()
	defer s.processes.mu.Unlock()
	for _, p := range s.processes.of {
		n += len(p.kill)
	}
	return n
}
