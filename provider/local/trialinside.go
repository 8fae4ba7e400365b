package local

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/muster-hpc/muster/internal/cpulist"
	"github.com/muster-hpc/muster/provider/local/network"
)

// This file runs inside a machine that is tried.

// trialReport is one line of what a trial says.
type trialReport struct {
	initReport
	What  string `json:"what,omitempty"`
	Check string `json:"check,omitempty"`
	OK    bool   `json:"ok,omitempty"`
	Done  bool   `json:"done,omitempty"`
}

// trialAddress is what a message link has while it leads nowhere.
func trialAddress() netip.Prefix { return netip.MustParsePrefix("192.0.2.1/24") }

// runTrial tries the machine and tells each step.
func runTrial(cfg *initConfig, say func(trialReport) error) error {
	// Limits of the group, not of the program, are what counts here.
	runtime.GOMAXPROCS(len(cfg.Trial.CPUs) + 1)
	if err := setLinks(cfg); err != nil {
		_ = say(trialReport{What: "links", Check: "they can be set up: " + err.Error()})
	}
	for _, s := range []struct {
		what string
		try  func(*trial) (string, error)
	}{
		{"processors", tryProcessors},
		{"memory", tryMemory},
		{"disk", tryDisk},
		{"management link", tryManagement},
		{"message link", tryMessage},
	} {
		_ = say(trialReport{initReport: initReport{Step: "it was trying its " + s.what}})
		check, err := s.try(cfg.Trial)
		if err != nil {
			check += ": " + err.Error()
		}
		if err := say(trialReport{What: s.what, Check: check, OK: err == nil}); err != nil {
			return err
		}
	}
	return say(trialReport{Done: true})
}

// tryProcessors makes every processor compute for a while, all at once.
func tryProcessors(t *trial) (string, error) {
	check := fmt.Sprintf("processors %s compute for %s and every result is right", cpulist.Format(t.CPUs), t.Compute)
	errs := make([]error, len(t.CPUs))
	rounds := make([]int, len(t.CPUs))
	var all sync.WaitGroup
	for i, cpu := range t.CPUs {
		all.Go(func() { rounds[i], errs[i] = compute(cpu, time.Duration(t.Compute)) })
	}
	all.Wait()
	for i, n := range rounds {
		if errs[i] == nil && n == 0 {
			errs[i] = fmt.Errorf("processor %d finished nothing", t.CPUs[i])
		}
	}
	if len(t.CPUs) == 0 {
		errs = append(errs, errors.New("there are none"))
	}
	return check, errors.Join(errs...)
}

func compute(cpu int, d time.Duration) (rounds int, err error) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return 0, fmt.Errorf("processor %d cannot be used: %w", cpu, err)
	}
	for end := time.Now().Add(d); time.Now().Before(end) || rounds == 0; rounds++ {
		if err := computeOnce(); err != nil {
			return rounds, fmt.Errorf("processor %d: %w", cpu, err)
		}
	}
	return rounds, nil
}

// computeOnce does sums whose results are known by other ways.
func computeOnce() error {
	// Integers: steps of a linear recurrence against its closed form.
	const a, c, n = 6364136223846793005, 1442695040888963407, 1 << 18
	var x uint64 = 1
	for range n {
		x = a*x + c
	}
	if want := leap(1, a, c, n); x != want {
		return fmt.Errorf("wrong integer result: %d, not %d", x, want)
	}
	// Floating point: every partial sum is a whole number that fits.
	const m = 1 << 17
	var squares, quarter float64
	for i := 1; i <= m; i++ {
		f := float64(i)
		squares += f * f
		quarter += 1 / (f * f)
	}
	if want := float64(m) * (m + 1) * (2*m + 1) / 6; squares != want {
		return fmt.Errorf("wrong sum of squares: %g, not %g", squares, want)
	}
	if got := math.Sqrt(6 * (quarter + 1.0/m)); math.Abs(got-math.Pi) > 1e-9 {
		return fmt.Errorf("wrong floating-point result: %.12f, not pi", got)
	}
	// Bytes: a digest that everybody knows.
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte("abc"))); !strings.HasPrefix(got, "ba7816bf8f01cfea414140de5dae2223") {
		return fmt.Errorf("wrong digest: %s", got)
	}
	return nil
}

// leap does n steps of x = a*x + c at once, by doubling.
func leap(x, a, c uint64, n int) uint64 {
	accA, accC := uint64(1), uint64(0)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			accA, accC = accA*a, accC*a+c
		}
		a, c = a*a, c*a+c
	}
	return accA*x + accC
}

// tryMemory writes patterns over a share of the memory and reads them back.
func tryMemory(t *trial) (string, error) {
	check := fmt.Sprintf("%s of memory hold what is written to them", sizeText(t.Memory))
	b, err := unix.Mmap(-1, 0, int(t.Memory), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return check, err
	}
	defer func() { _ = unix.Munmap(b) }()
	workers := max(1, len(t.CPUs))
	part := (len(b)/workers + 7) &^ 7
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range workers {
		from, to := min(i*part, len(b)), min((i+1)*part, len(b))
		all.Go(func() { errs[i] = tryPart(b[from:to], uint64(from)) })
	}
	all.Wait()
	return check, errors.Join(errs...)
}

// tryPart writes to each word something that depends on where it is, then the
// opposite.
func tryPart(b []byte, at uint64) error {
	words := len(b) / 8
	if words == 0 {
		return nil
	}
	w := unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), words)
	for _, flip := range []uint64{0, ^uint64(0)} {
		for i := range words {
			w[i] = (at + uint64(i)*0x9e3779b97f4a7c15) ^ flip
		}
		for i := range words {
			if want := (at + uint64(i)*0x9e3779b97f4a7c15) ^ flip; w[i] != want {
				return fmt.Errorf("at byte %d: %x, not %x", at+uint64(i)*8, w[i], want)
			}
		}
	}
	return nil
}

// tryDisk writes to a file system like the machine's own and reads it back.
func tryDisk(t *trial) (string, error) {
	check := fmt.Sprintf("%s written to its file system come back", sizeText(t.Disk))
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return check, err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return check, err
	}
	if err := unix.Mount("tmpfs", stage, "tmpfs", 0, fmt.Sprintf("mode=0700,size=%d", t.Room)); err != nil {
		return check, err
	}
	debug.SetGCPercent(50)
	h := sha256.New()
	f, err := os.OpenFile(stage+"/trial", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return check, err
	}
	defer func() { _ = f.Close() }()
	chunk := make([]byte, 1<<20)
	left := t.Disk
	for ; left > 0; left -= int64(len(chunk)) {
		if _, err := rand.Read(chunk); err != nil {
			return check, err
		}
		h.Write(chunk)
		if _, err := f.Write(chunk); err != nil {
			return check, err
		}
	}
	wrote := h.Sum(nil)
	h.Reset()
	if err := f.Sync(); err != nil {
		return check, err
	}
	if _, err := io.CopyBuffer(h, io.NewSectionReader(f, 0, t.Disk), chunk); err != nil {
		return check, err
	}
	if string(h.Sum(nil)) != string(wrote) {
		return check, errors.New("something else came back")
	}
	return check, nil
}

// tryManagement reaches the server. That nobody listens there is an answer too.
func tryManagement(t *trial) (string, error) {
	check := "the server answers over it"
	c, err := net.DialTimeout("tcp4", t.Server, 2*time.Second) //nolint:noctx // bounded, and nobody waits for it
	if errors.Is(err, syscall.ECONNREFUSED) {
		return check, nil
	}
	if err != nil {
		return check, err
	}
	return check, c.Close()
}

// tryMessage sees the link come up and sends frames, which the server counts.
func tryMessage(t *trial) (string, error) {
	check := "it has a carrier and takes frames"
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		l, err := netlink.LinkByName(network.MessageLink)
		if err != nil {
			return check, err
		}
		if l.Attrs().RawFlags&unix.IFF_RUNNING != 0 {
			break
		}
		if time.Now().After(end) {
			return check, errors.New("it does not come up")
		}
	}
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 255}), 9)
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return check, err
	}
	defer func() { _ = c.Close() }()
	// The kernel may throw away what is sent in the moment after the carrier has
	// come, so what counts is what the link has taken.
	for end := time.Now().Add(2 * time.Second); ; {
		if _, err := c.Write(make([]byte, 1000)); err != nil {
			return check, err
		}
		l, err := netlink.LinkByName(network.MessageLink)
		if err != nil {
			return check, err
		}
		if st := l.Attrs().Statistics; st != nil && st.TxPackets >= uint64(t.Frames) {
			return check, nil
		}
		if time.Now().After(end) {
			return check, errors.New("it takes no frames")
		}
	}
}
