package muster_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The first transcript of the README agrees with itself: machines add up, each has a name,
// times go forward, and one cluster has one ID.
func TestTranscriptAgreesWithItself(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```\n$ muster create ")
	block, _, ok := strings.Cut(rest, "\n```")
	if !ok {
		t.Fatal("the README begins with no transcript")
	}
	steps := strings.Split("$ muster create "+block, "\n\n")
	number := func(step, expr string) int {
		t.Helper()
		m := regexp.MustCompile(expr).FindStringSubmatch(step)
		if m == nil {
			t.Fatalf("no %s in\n%s", expr, step)
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	sum := func(step, expr string) (n int) {
		for _, m := range regexp.MustCompile(expr).FindAllStringSubmatch(step, -1) {
			v, _ := strconv.Atoi(m[1])
			n += v
		}
		return n
	}
	same := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, and %d elsewhere", what, got, want)
		}
	}
	create := steps[0]
	nodes := number(create, `-n (\d+)`)
	site := number(create, `considered +(\d+) machines`)
	same("machines considered", number(create, `: (\d+) fit`)+sum(create, `(?m)^  not +(\d+) machine`), site)
	chosen := number(create, `chosen +(\d+) machines`)
	same("machines chosen", chosen, nodes+1)
	_, names, _ := strings.Cut(create[strings.Index(create, "  chosen"):], " rack: ")
	names, _, _ = strings.Cut(names, "\n")
	same("names", len(strings.Fields(names)), chosen)
	for _, m := range regexp.MustCompile(`all (\d+) nodes`).FindAllStringSubmatch(create, -1) {
		if m[1] != strconv.Itoa(chosen) {
			t.Errorf("%s, and %d machines are chosen", m[0], chosen)
		}
	}
	ids := map[string]bool{}
	for _, step := range steps {
		for _, id := range regexp.MustCompile(`\bc-[a-z0-9]{10}\b`).FindAllString(step, -1) {
			ids[id] = true
		}
		last := 0.0
		for _, m := range regexp.MustCompile(`(?m)^ +(\d+\.\d)s  `).FindAllStringSubmatch(step, -1) {
			at, _ := strconv.ParseFloat(m[1], 64)
			if at < last {
				t.Errorf("time goes back in\n%s", step)
			}
			last = at
		}
		switch {
		case strings.Contains(step, "srun"):
			same("ranks", number(step, `(\d+) ranks`), number(step, `-N(\d+)`))
			same("nodes that take jobs", number(step, `on (\d+) nodes`), nodes)
		case strings.HasPrefix(step, "$ muster scale"):
			to := number(step, `scale \S+ (\d+)`)
			same("nodes before", number(step, `from (\d+) to`), nodes)
			same("nodes after", number(step, `scaled from \d+ to (\d+)`), to)
			same("the first that joins", number(step, `n\[0*(\d+)-`), nodes+1)
			same("the last that joins", number(step, `n\[\d+-0*(\d+)\]`), to)
			if m := regexp.MustCompile(`(?m)^ +(\d+\.\d)s  scaled .* in (\d+\.\d) s$`).FindStringSubmatch(step); m == nil || m[1] != m[2] {
				t.Errorf("scaling takes %v", m)
			}
			if to+2 > site {
				t.Errorf("%d machines have no room for a head, %d nodes and one to spare", site, to)
			}
		case strings.Contains(step, "--dry-run"):
			same("machines considered later", number(step, `considered +(\d+) machines`), site)
			same("their sum", number(step, `, (\d+) of them free`)+sum(step, `(?m)^  not +(\d+) machine`), site)
			same("what would fit", number(step, `and (\d+) machines fit`), number(step, `not +(\d+) machines: cores`))
			same("what is asked", number(step, `asked +(\d+) machines`), number(step, `-n (\d+)`)+1)
		}
	}
	if len(ids) != 1 {
		t.Errorf("one cluster has the IDs %v", ids)
	}
	if len(steps) < 6 {
		t.Errorf("only %d steps", len(steps))
	}
}
