package main

import "github.com/muster-hpc/muster/lab/machine"

// labController is what opens the management controllers of a lab's machines. None
// is built in yet: machines are woken by the magic packet, and switched by 'muster
// lab power'.
func labController() machine.OpenController { return nil }
