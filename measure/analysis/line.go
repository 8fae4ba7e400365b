package analysis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// line is any line of the probe, before it is known of which kind it is. Pointers
// tell what is absent from what is zero. Fields that are not known here are left
// alone: a newer probe may say more.
type line struct {
	Kind string `json:"kind"`

	V        *int     `json:"v"`
	Mode     Mode     `json:"mode"`
	Seed     *uint64  `json:"seed"`
	Started  int64    `json:"started"`
	Ranks    *int     `json:"ranks"`
	MPI      string   `json:"mpi"`
	Compiler string   `json:"compiler"`
	Flags    string   `json:"flags"`
	Source   string   `json:"source"`
	Timer    string   `json:"timer"`
	Clock    *float64 `json:"clock"`
	Cache    int64    `json:"cache"`

	Rank       *int   `json:"rank"`
	Host       string `json:"host"`
	CPUs       string `json:"cpus"`
	BLAS       string `json:"blas"`
	BLASConfig string `json:"blas_config"`

	Metric   string   `json:"metric"`
	Value    *float64 `json:"value"`
	Unit     string   `json:"unit"`
	Peer     string   `json:"peer"`
	PeerRank *int     `json:"peer_rank"`
	Size     int64    `json:"size"`
	Threads  int      `json:"threads"`
	Round    *int     `json:"round"`
	N        *int     `json:"n"`
	Min      *float64 `json:"min"`
	Max      *float64 `json:"max"`
	Mean     *float64 `json:"mean"`
	Streams  int      `json:"streams"`
	Offered  float64  `json:"offered"`
	Seconds  *float64 `json:"seconds"`
	OK       *bool    `json:"ok"`
	Check    string   `json:"check"`

	PML    []string          `json:"pml"`
	BTL    []string          `json:"btl"`
	MTL    []string          `json:"mtl"`
	Mapped []string          `json:"mapped"`
	Set    map[string]string `json:"set"`
	Sent   map[string]int64  `json:"sent"`
	TCP    []string          `json:"tcp"`

	Samples *int `json:"samples"`

	What string `json:"what"`
	Text string `json:"text"`
}

// decodeLine reads one line. Repeated fields are refused: of two values nobody
// knows which was meant.
func decodeLine(text []byte) (*line, error) {
	if err := plain(text); err != nil {
		return nil, err
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		var t *json.UnmarshalTypeError
		if errors.As(err, &t) {
			return nil, fmt.Errorf("field %s must not be a %s", clip(t.Field), t.Value)
		}
		return nil, errors.New("not a JSON object")
	}
	if l.Kind == "" {
		return nil, errors.New("field kind is missing")
	}
	return &l, nil
}

// deepest is how far values of a line lie within each other.
const deepest = 3

// plain looks for fields that are there twice, at any depth, in any spelling:
// encoding/json takes Kind for kind.
func plain(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var seen []map[string]bool // one for each open object; nil for arrays
	name := false              // the next token is a field's name
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errors.New("not a JSON object")
		}
		switch v := tok.(type) {
		case json.Delim:
			switch v {
			case '{', '[':
				if len(seen) == deepest {
					return errors.New("values lie too deep within each other")
				}
				if v == '{' {
					seen = append(seen, map[string]bool{})
				} else {
					seen = append(seen, nil)
				}
			default:
				seen = seen[:len(seen)-1]
			}
			name = len(seen) > 0 && seen[len(seen)-1] != nil
			continue
		case string:
			if name {
				low := strings.ToLower(v)
				if seen[len(seen)-1][low] {
					return fmt.Errorf("field %s is there twice", clip(v))
				}
				seen[len(seen)-1][low] = true
				name = false
				continue
			}
		}
		name = len(seen) > 0 && seen[len(seen)-1] != nil
	}
}

// most is the largest value of a unit that is believed: above what any machine
// of the coming years does, below what a broken clock makes of it.
func most(unit string) (float64, bool) {
	limit, ok := map[string]float64{"s": 1e6, "B/s": 1e15, "flop/s": 1e18, "op/s": 1e15, "1": 1}[unit]
	return limit, ok
}

// rounded is by what share a mean may be outside of the extremes, because figures are
// written with nine digits; mostStreams is how many connections there are at once.
const (
	rounded     = 1e-6
	mostStreams = 1024
)

// believable says what is wrong with the figures of a sample, or "".
func (l *line) believable() string {
	limit, known := most(l.Unit)
	for _, f := range []struct {
		name  string
		value *float64
	}{{"value", l.Value}, {"min", l.Min}, {"max", l.Max}} {
		switch v := f.value; {
		case v == nil:
			return f.name + " is missing"
		case math.IsNaN(*v) || math.IsInf(*v, 0) || *v < 0:
			return fmt.Sprintf("%s is %g", f.name, *v)
		case !known:
			return fmt.Sprintf("unknown unit %q", clip(l.Unit))
		case *v > limit:
			return fmt.Sprintf("%s is %g %s, and no machine does more than %g", f.name, *v, l.Unit, limit)
		case *v == 0 && l.Unit != "1":
			return f.name + " is nothing"
		}
	}
	switch {
	case *l.Min > *l.Value || *l.Value > *l.Max:
		return fmt.Sprintf("value %g is not between min %g and max %g", *l.Value, *l.Min, *l.Max)
	case l.N == nil || *l.N < 1:
		return "n is missing: how many repetitions is it the median of?"
	case l.Seconds == nil || math.IsNaN(*l.Seconds) || *l.Seconds < 0 || *l.Seconds > 1e6:
		return "seconds are missing or absurd"
	case l.Size < 0 || l.Threads < 0:
		return "size or threads are negative"
	case l.Mean != nil && !(*l.Mean >= *l.Min*(1-rounded) && *l.Mean <= *l.Max*(1+rounded)):
		return fmt.Sprintf("mean %g is not between min %g and max %g", *l.Mean, *l.Min, *l.Max)
	case l.Streams < 0 || l.Streams > mostStreams || !(l.Offered >= 0 && l.Offered <= 1e15):
		return "streams or offered are absurd"
	}
	return ""
}

// clip keeps hostile text out of messages.
func clip(s string) string { return clipTo(s, 60) }

func clipTo(s string, enough int) string {
	if len(s) > enough {
		s = s[:enough] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
