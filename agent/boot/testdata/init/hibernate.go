package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/muster-hpc/muster/agent/facts"
	"github.com/muster-hpc/muster/agent/hibernate"
	"github.com/muster-hpc/muster/wire"
)

// hibernated has the machine hibernate as the agent does, and says what came of it.
func hibernated(order []byte) string {
	var area wire.MemoryArea
	if err := json.Unmarshal(order, &area); err != nil {
		return err.Error()
	}
	var k hibernate.Kernel
	if why := k.Why(); len(why) > 0 {
		return fmt.Sprint(why)
	}
	a, err := hibernate.OpenArea(facts.Source{}.Disks(), area)
	if err == nil {
		err = errors.Join(a.Format(), a.Swap())
	}
	if err != nil {
		return err.Error()
	}
	// What the disk must not show, and what must be as it was.
	secret := bytes.Repeat([]byte("of a tenant"), 1<<20/11)
	memory := make([]byte, 16<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(memory)
	sum := sha256.Sum256(memory)
	println("hibernating now")
	if err := k.Suspend(); err != nil {
		return err.Error()
	}
	note, err := a.Note()
	if err != nil {
		return err.Error()
	}
	same := sum == sha256.Sum256(memory) && bytes.Equal(secret, bytes.Repeat([]byte("of a tenant"), 1<<20/11))
	err = errors.Join(a.Unswap(), a.Void(), a.Close())
	return fmt.Sprintf("same memory %v, boot %d of %s, token %s, end %v", same, note.Attempt, note.Machine, note.Token, err)
}
