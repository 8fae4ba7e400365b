package selftest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/muster-hpc/muster"
)

func noPin(int) error { return nil }

// small gives n blocks of a few words, so that each of them can be broken.
func small(words, n int) func(int) ([]uint64, func(), error) {
	left := make(chan struct{}, n)
	for range n {
		left <- struct{}{}
	}
	return func(int) ([]uint64, func(), error) {
		select {
		case <-left:
			return make([]uint64, words), func() {}, nil
		default:
			return nil, nil, errors.New("no more")
		}
	}
}

func smallMemory(words, n int, between func(int, [][]uint64)) Memory {
	return Memory{
		CPUs: []int{0, 1}, Bytes: 1 << 40, Total: 1 << 40, Fill: time.Minute, Clock: muster.SystemClock{},
		Pin: noPin, Take: small(words, n), Between: between,
	}
}

// Real memory of this computer holds what is written.
func TestMemory(t *testing.T) {
	t.Parallel()
	m := Memory{CPUs: []int{0, 1}, Bytes: 100 << 20, Total: 1 << 30, Fill: 20 * time.Second, Clock: muster.SystemClock{}, Pin: noPin}
	if s := m.Run(t.Context()); !s.OK || !strings.Contains(s.Check, "0.1 GiB of 1.0 GiB written and read back") {
		t.Errorf("%+v", s)
	}
	m.Bytes = 1
	if s := m.Run(t.Context()); s.OK {
		t.Errorf("%+v", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.Bytes = 1 << 40
	if s := m.Run(ctx); s.OK {
		t.Errorf("%+v", s)
	}
}

// A bit that flips once, whenever and wherever, is found and told.
func TestFlippedBit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const words, blocks = 37, 5
		pass := rapid.IntRange(0, passes-1).Draw(t, "pass")
		b, w, bit := rapid.IntRange(0, blocks-1).Draw(t, "block"), rapid.IntRange(0, words-1).Draw(t, "word"), rapid.IntRange(0, 63).Draw(t, "bit")
		s := smallMemory(words, blocks, func(p int, all [][]uint64) {
			if p == pass {
				all[b][w] ^= 1 << bit
			}
		}).Run(context.Background())
		if s.OK || !strings.Contains(s.Check, "1 words of") || !strings.Contains(s.Check, "flipped") {
			t.Fatalf("%+v", s)
		}
	})
}

// A bit that is always 0, or always 1, is found; so are two words that are one.
func TestStuck(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const words, blocks = 37, 3
		at := func(name string) (int, int) {
			return rapid.IntRange(0, blocks-1).Draw(t, name+" block"), rapid.IntRange(0, words-1).Draw(t, name+" word")
		}
		b, w := at("one")
		b2, w2 := at("other")
		bit := uint64(1) << rapid.IntRange(0, 63).Draw(t, "bit")
		what := rapid.SampledFrom([]string{"zero", "one", "same"}).Draw(t, "fault")
		if what == "same" && b == b2 && w == w2 {
			return
		}
		s := smallMemory(words, blocks, func(_ int, all [][]uint64) {
			switch what {
			case "zero":
				all[b][w] &^= bit
			case "one":
				all[b][w] |= bit
			case "same":
				all[b][w] = all[b2][w2]
			}
		}).Run(context.Background())
		if s.OK {
			t.Fatalf("%s at %d/%d is overlooked: %+v", what, b, w, s)
		}
	})
}

// Root sees where a word is, which tells the module.
func TestPhysical(t *testing.T) {
	t.Parallel()
	w, free, err := take(blockWords)
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	w[0], w[1] = 1, 1
	if a := physical(&w[0]); a != 0 && physical(&w[1]) != a+8 {
		t.Errorf("%#x and %#x", a, physical(&w[1]))
	}
}
