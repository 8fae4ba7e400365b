package rendezvous_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-hpc/muster/agent/rendezvous"
	"github.com/muster-hpc/muster/measure/analysis"
)

func free(t *testing.T) string {
	t.Helper()
	// Not one that the kernel gives to whoever asks for any: it is free again until the
	// hub takes it, on every address.
	for range 100 {
		port := 12000 + rand.IntN(20000)
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			_ = l.Close()
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	t.Fatal("no port is free")
	return ""
}

func all(n int, do func(rank int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() { errs[r] = do(r) })
	}
	wg.Wait()
	return errs
}

// hub is not always the first rank.
func hub(size int) int { return min(1, size-1) }

func options(rank, size int, at string) rendezvous.Options {
	return rendezvous.Options{Rank: rank, Size: size, Hub: rank == hub(size), Host: fmt.Sprintf("n%02d", rank+1), At: at, Token: "secret"}
}

// Ranks meet in any order, hear each other, wait, and the first prints what the
// server reads.
func TestWorld(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 7} {
		at := free(t)
		var out bytes.Buffer
		var mu sync.Mutex
		waiting, most := 0, 0
		for r, err := range all(size, func(r int) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if r == hub(size) {
				time.Sleep(100 * time.Millisecond) // the others knock in vain
			}
			w, err := rendezvous.Meet(ctx, options(r, size, at))
			if err != nil {
				return err
			}
			defer w.Close()
			words, err := w.All([]byte("word of " + strconv.Itoa(r)))
			for i := range words {
				if string(words[i]) != "word of "+strconv.Itoa(i) || w.Hosts()[i] != fmt.Sprintf("n%02d", i+1) {
					t.Errorf("rank %d hears %q from %s", r, words[i], w.Hosts()[i])
				}
			}
			if err != nil || len(words) != size {
				return fmt.Errorf("%d words: %w", len(words), err)
			}
			mu.Lock()
			waiting++
			mu.Unlock()
			if err := w.Wait(); err != nil {
				return err
			}
			mu.Lock()
			most = max(most, size-waiting)
			mu.Unlock()
			said := rendezvous.Said{Host: fmt.Sprintf("n%02d", r+1)}
			if r == 0 {
				said.Omitted = []rendezvous.Omission{{Host: "n01", What: "disk", Text: "its image has no fio"}}
			}
			peer, round := (r+1)%size, 4
			said.Samples = []rendezvous.Sample{{
				Metric: "net.udp.loss", Unit: "1", Host: said.Host, Rank: r, Peer: w.Hosts()[peer], PeerRank: &peer, Round: &round, N: 1, OK: true,
			}, {Metric: "disk.read", Unit: "B/s", Host: said.Host, Rank: r, Check: "the disk is on fire"}}
			var mine bytes.Buffer
			err = w.Tell(&mine, rendezvous.Launch{Mode: "net", Seed: 1<<64 - 1, Started: time.Now(), Clock: 1e-9}, said)
			if r == hub(size) {
				out = mine
			} else if mine.Len() > 0 {
				t.Errorf("rank %d prints %q", r, mine.String())
			}
			return err
		}) {
			if err != nil {
				t.Fatalf("rank %d of %d: %v", r, size, err)
			}
		}
		if most > 0 {
			t.Errorf("somebody went on while %d were missing", most)
		}
		l, err := analysis.Read(&out, analysis.DefaultLimits())
		if err != nil || l.Mode != analysis.Net || l.Seed != 1<<64-1 || len(l.Ranks) != size || len(l.Samples) != size || len(l.Findings) != size || len(l.Omitted) != 1 || l.Unknown > 0 {
			t.Fatalf("%+v: %v", l, err)
		}
		if s := l.Samples[0]; s.Value != 0 || s.Round != 4 || s.PeerRank != 1%size || l.Ranks[0].CPUs == "" || l.Findings[0].Check != "the disk is on fire" {
			t.Errorf("%+v, %+v", s, l)
		}
	}
}

// Strangers are not listened to, and keep nobody waiting.
func TestStrangers(t *testing.T) {
	t.Parallel()
	at := free(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		for _, words := range []string{"", "GET / HTTP/1.0\r\n\r\n", "\x00\x00\x00\x02{}", "\x00\x00\x00\x15{\"rank\":0,\"host\":\"x\"}", "\xff\xff\xff\xff", "\x00\x00\x00\x1e{\"rank\":1,\"token\":\"guess\"}     "} {
			for ctx.Err() == nil {
				c, err := net.Dial("tcp", at)
				if err == nil {
					defer c.Close()
					_, _ = c.Write([]byte(words))
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()
	for r, err := range all(2, func(r int) error {
		if r == 1 {
			time.Sleep(200 * time.Millisecond)
		}
		w, err := rendezvous.Meet(ctx, options(r, 2, at))
		if err == nil {
			defer w.Close()
			err = w.Wait()
		}
		return err
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if _, err := rendezvous.Meet(ctx, rendezvous.Options{Rank: 0, Size: 2, At: at, Hub: true}); err == nil {
		t.Error("anybody could join")
	}
}

// Who waits for a rank that is gone is told which.
func TestLost(t *testing.T) {
	t.Parallel()
	at := free(t)
	for r, err := range all(3, func(r int) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w, err := rendezvous.Meet(ctx, options(r, 3, at))
		if err != nil {
			return err
		}
		defer w.Close()
		if r == 2 {
			return nil
		}
		return w.Wait()
	}) {
		if (err != nil) != (r < 2) || r == hub(3) && !strings.Contains(err.Error(), "rank 2 on n03 is gone") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	for r := range 2 {
		if _, err := rendezvous.Meet(ctx, options(r, 2, at)); err == nil {
			t.Errorf("rank %d met nobody and is content", r)
		}
	}
}

func TestFromEnvironment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env        map[string]string
		rank, size int
		wrong      bool
	}{
		"alone":    {nil, 0, 1, false},
		"mpirun":   {map[string]string{"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "MUSTER_MEET": "x"}, 3, 4, false},
		"outside":  {map[string]string{"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "4"}, 0, 0, true},
		"negative": {map[string]string{"OMPI_COMM_WORLD_RANK": "-1"}, 0, 0, true},
		"none":     {map[string]string{"OMPI_COMM_WORLD_SIZE": "0"}, 0, 0, true},
		"words":    {map[string]string{"OMPI_COMM_WORLD_SIZE": "four"}, 0, 0, true},
	} {
		o, err := rendezvous.FromEnvironment(func(k string) string { return c.env[k] })
		if (err != nil) != c.wrong || err == nil && (o.Rank != c.rank || o.Size != c.size || o.Token != c.env["MUSTER_MEET"]) {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

// forwarded is the output of ranks as mpirun passes it on: in pieces, of whichever rank has some,
// however long a line is.
func forwarded(r *rand.Rand, outputs [][]byte) []byte {
	const piece = 4096
	var text []byte
	for len(outputs) > 0 {
		i := r.IntN(len(outputs))
		n := min(len(outputs[i]), 1+r.IntN(piece))
		text = append(text, outputs[i][:n]...)
		if outputs[i] = outputs[i][n:]; len(outputs[i]) == 0 {
			outputs = slices.Delete(outputs, i, i+1)
		}
	}
	return text
}

// Long lines of several ranks are whole in what mpirun passes on, since one rank prints them all;
// those that each prints by itself are not.
func TestLinesAreWhole(t *testing.T) {
	t.Parallel()
	const size = 5
	line := func(rank int) []byte {
		return fmt.Appendf(nil, `{"host":"n%02d","x":%q}`, rank+1, strings.Repeat(strconv.Itoa(rank), 20000))
	}
	whole := func(text []byte) bool {
		lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
		for r := range size {
			if !slices.ContainsFunc(lines, func(l []byte) bool { return bytes.Equal(l, line(r)) }) {
				return false
			}
		}
		return len(lines) == size
	}
	r := rand.New(rand.NewPCG(1, 2))
	each := make([][]byte, size)
	for i := range each {
		each[i] = append(line(i), '\n')
	}
	if whole(forwarded(r, each)) {
		t.Fatal("lines of several ranks are whole: this test shows nothing")
	}
	at := free(t)
	outputs := make([]bytes.Buffer, size)
	for rank, err := range all(size, func(rank int) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w, err := rendezvous.Meet(ctx, options(rank, size, at))
		if err != nil {
			return err
		}
		defer w.Close()
		return w.TellLines(&outputs[rank], line(rank))
	}) {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
	var said [][]byte
	for i := range outputs {
		if outputs[i].Len() > 0 {
			said = append(said, outputs[i].Bytes())
		}
	}
	if text := forwarded(r, said); !whole(text) {
		t.Errorf("%d bytes are not the lines of %d ranks", len(text), size)
	}
}
