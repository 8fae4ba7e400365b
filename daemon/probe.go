package daemon

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
)

// probe asks a machine whether anything on it is alive, past its agent: its SSH
// server says its name at once. A frozen machine accepts the connection, which
// its kernel does, and says nothing.
func (s *Server) probe(ctx context.Context, m muster.Machine) error {
	conn, err := s.dial(ctx, m, 22)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(2 * time.Second)
	}
	if err := conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	line, err := bufio.NewReaderSize(conn, 256).Peek(len("SSH-"))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(line), "SSH-") {
		return fmt.Errorf("what answers on port 22 is not SSH")
	}
	return nil
}
