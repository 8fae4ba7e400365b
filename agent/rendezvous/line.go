package rendezvous

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Sample is a figure of one launch: a line of kind sample, as muster-probe prints
// it. Names that begin with Peer, and Round, are left out where they are nil or
// empty.
type Sample struct {
	Metric   string `json:"metric"`
	Unit     string `json:"unit"`
	Host     string `json:"host"`
	Rank     int    `json:"rank"`
	Peer     string `json:"peer,omitempty"`
	PeerRank *int   `json:"peer_rank,omitempty"`
	Round    *int   `json:"round,omitempty"`
	Size     int64  `json:"size,omitempty"`
	// Streams is how many connections there were at once, and Offered how many bytes a
	// second were sent; 0: what is usual.
	Streams int     `json:"streams,omitempty"`
	Offered float64 `json:"offered,omitempty"`
	Value   float64 `json:"value"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	N       int     `json:"n"`
	Seconds float64 `json:"seconds"`
	OK      bool    `json:"ok"`
	Check   string  `json:"check"`
}

// Omission is something that a node could not measure, which is no failure.
type Omission struct {
	Host string `json:"host"`
	What string `json:"what"`
	Text string `json:"text"`
}

// Said is what one rank has to say of a launch.
type Said struct {
	Host    string     `json:"host"`
	CPUs    string     `json:"cpus"`
	Samples []Sample   `json:"samples"`
	Omitted []Omission `json:"omitted"`
}

// Launch is the first line.
type Launch struct {
	Mode    string
	Seed    uint64
	Started time.Time
	// Clock is the step of the clock of what measured, in seconds.
	Clock float64
}

// Tell makes the hub print what all of them say.
func (w *World) Tell(out io.Writer, l Launch, mine Said) error {
	mine.CPUs = allowed()
	b, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	all, err := w.Gather(b)
	if err != nil || !w.hub {
		return err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	say := func(v any) { err = errorsFirst(err, enc.Encode(v)) }
	say(map[string]any{
		"kind": "launch", "v": 1, "mode": l.Mode, "seed": l.Seed, "started": l.Started.Unix(), "ranks": w.Size, "timer": "of the program that measures", "clock": l.Clock,
	})
	list := make([]Said, w.Size)
	for r, b := range all {
		if err := json.Unmarshal(b, &list[r]); err != nil {
			return fmt.Errorf("rank %d says what cannot be read: %w", r, err)
		}
		say(map[string]any{"kind": "rank", "rank": r, "host": list[r].Host, "cpus": list[r].CPUs})
	}
	samples := 0
	for _, s := range list {
		for _, x := range s.Samples {
			samples++
			say(struct {
				Kind string `json:"kind"`
				Sample
			}{"sample", x})
		}
		for _, o := range s.Omitted {
			say(struct {
				Kind string `json:"kind"`
				Omission
			}{"omitted", o})
		}
	}
	say(map[string]any{"kind": "end", "samples": samples})
	if err != nil {
		return err
	}
	_, err = out.Write(text.Bytes())
	return err
}

// TellLines makes the hub print a line of each rank, by rank, in one write. None of them has a
// line feed.
func (w *World) TellLines(out io.Writer, mine []byte) error {
	all, err := w.Gather(mine)
	if err != nil || !w.hub {
		return err
	}
	_, err = out.Write(append(bytes.Join(all, []byte("\n")), '\n'))
	return err
}

func errorsFirst(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// allowed is the kernel's list of processors that this process may use.
func allowed() string {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(list)
		}
	}
	return ""
}
