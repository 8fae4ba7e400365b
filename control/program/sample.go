package program

import (
	"math"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// Sample is what the processors of one node had done, and what it had sent, at one moment.
type Sample struct {
	// When is before, begin or end: two before the program, for what else is busy, one after it.
	When string
	Node string
	// At is a clock in seconds. All others but Slowed are seconds of processors.
	At float64
	// Slice is a part of a host: User and System are of its own processes, and Busy is of the
	// host, on its cores.
	Slice        bool
	User, System float64
	Busy, Stolen float64
	// Slowed counts how often the processors were throttled.
	Slowed int64
	// Sent is what went out to the message network. Nil: the node has none.
	Sent *Sent
}

// Sent counts what left a node.
type Sent struct{ Bytes, Packets int64 }

// add adds what was sent from one moment to another. False: it is not known, or cannot be true,
// such as of a counter that began anew.
func (s *Sent) add(begin, end *Sent) bool {
	if begin == nil || end == nil || end.Bytes < begin.Bytes || end.Packets < begin.Packets {
		return false
	}
	bytes, packets := end.Bytes-begin.Bytes, end.Packets-begin.Packets
	if bytes > math.MaxInt64-s.Bytes || packets > math.MaxInt64-s.Packets {
		return false
	}
	s.Bytes += bytes
	s.Packets += packets
	return true
}

// tick is the unit of times in /proc: USER_HZ is 100 on every port of Linux.
const tick = 0.01

func readSample(text string) (s Sample, ok bool) {
	w := strings.Fields(text)
	if len(w) != 9 && len(w) != 11 || !hostForm.MatchString(w[1]) {
		return s, false
	}
	at, err := strconv.ParseFloat(strings.ReplaceAll(w[2], ",", "."), 64)
	if err != nil || math.IsNaN(at) || math.Abs(at) > 1e12 {
		return s, false
	}
	var n [7]int64
	for i, text := range w[4:] {
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil || n[i] < 0 {
			return s, false
		}
	}
	seconds := func(i int) float64 { return float64(n[i]) * tick }
	s = Sample{When: w[0], Node: w[1], At: at, Slice: w[3] == "1", User: seconds(0), System: seconds(1), Busy: seconds(2), Stolen: seconds(3), Slowed: n[4]}
	if len(w) == 11 {
		s.Sent = &Sent{Bytes: n[5], Packets: n[6]}
	}
	return s, true
}

// use is what the samples of a run say together; nil: they are not complete.
func use(run muster.ProgramRun, r Report) *muster.ProgramUse {
	of := map[string]map[string]Sample{}
	for _, s := range r.Samples {
		if of[s.Node] == nil {
			of[s.Node] = map[string]Sample{}
		}
		of[s.Node][s.When] = s
	}
	if len(of) == 0 || len(of) != run.NodeCount {
		return nil
	}
	var sent Sent
	counted := true
	u := muster.ProgramUse{Cores: run.Ranks * max(1, run.Settings.Threads)}
	for _, node := range of {
		before, ok0 := node["before"]
		begin, ok1 := node["begin"]
		end, ok2 := node["end"]
		if !ok0 || !ok1 || !ok2 {
			return nil
		}
		user, system := max(0, end.User-begin.User), max(0, end.System-begin.System)
		u.User += user
		u.System += system
		u.Throttled += max(0, end.Slowed-begin.Slowed)
		foreign := max(0, end.Stolen-begin.Stolen)
		if end.Slice {
			foreign += max(0, end.Busy-begin.Busy-user-system)
		} else if took := begin.At - before.At; took > 0 {
			foreign += max(0, begin.Busy-before.Busy) / took * run.Wall
		}
		u.Foreign += foreign
		counted = counted && sent.add(begin.Sent, end.Sent)
	}
	for _, v := range []*float64{&u.User, &u.System, &u.Foreign} {
		*v = math.Round(*v*1e6) / 1e6
	}
	if counted {
		u.SentBytes, u.SentPackets = &sent.Bytes, &sent.Packets
	}
	return &u
}
