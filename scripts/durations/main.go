// Command durations reads what `go test -json` says. As it comes it prints one line for
// each package and, of packages that fail, what their tests said. With -sum it prints how
// long each package took, the slowest first, and the ten slowest tests.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
)

// event is one line of test2json's output, or of a build's.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds
}

func main() {
	sum := flag.Bool("sum", false, "print durations, and nothing else")
	flag.Parse()
	say := follow
	if *sum {
		say = summarize
	}
	if err := say(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// each calls f with every event. What is no event (go says some things plainly) is an
// output of nobody's.
func each(in io.Reader, f func(event)) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "build-output", Output: string(line)}
			}
			f(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// follow prints packages as they end. What a test said is kept until then, unless it is
// known by then that nobody will ask for it.
func follow(in io.Reader, out io.Writer) error {
	said := map[string]map[string][]string{} // by package and test
	return each(in, func(e event) {
		switch {
		case e.Action == "build-output":
			fmt.Fprint(out, e.Output)
		case e.Action == "output":
			if said[e.Package] == nil {
				said[e.Package] = map[string][]string{}
			}
			said[e.Package][e.Test] = append(said[e.Package][e.Test], e.Output)
		case e.Test != "" && (e.Action == "pass" || e.Action == "skip"):
			delete(said[e.Package], e.Test)
		case e.Test == "" && (e.Action == "pass" || e.Action == "fail"):
			word := "ok  "
			if e.Action == "fail" {
				word = "FAIL"
				tell(out, said[e.Package])
			}
			fmt.Fprintf(out, "%s %7.1f s  %s\n", word, e.Elapsed, short(e.Package))
			delete(said, e.Package)
		}
	})
}

// tell prints what is left of a package that failed: a test before its parts, and last
// what belongs to no test.
func tell(out io.Writer, said map[string][]string) {
	tests := make([]string, 0, len(said))
	for t := range said {
		if t != "" {
			tests = append(tests, t)
		}
	}
	slices.Sort(tests)
	for _, t := range append(tests, "") {
		fmt.Fprint(out, strings.Join(said[t], ""))
	}
}

// took is how long something took.
type took struct {
	what    string
	seconds float64
}

func summarize(in io.Reader, out io.Writer) error {
	packages, tests := map[string]float64{}, map[string]float64{}
	err := each(in, func(e event) {
		switch {
		case e.Action != "pass" && e.Action != "fail":
		case e.Test == "":
			packages[short(e.Package)] += e.Elapsed
		case !strings.Contains(e.Test, "/"): // a part's time is its test's, too
			name := short(e.Package) + " " + e.Test
			tests[name] = max(tests[name], e.Elapsed)
		}
	})
	const worth = 1 // second
	fmt.Fprintln(out, "seconds by package:")
	rest, more := 0.0, 0
	for _, t := range slowest(packages) {
		if t.seconds < worth {
			rest, more = rest+t.seconds, more+1
			continue
		}
		fmt.Fprintf(out, "%8.1f  %s\n", t.seconds, t.what)
	}
	fmt.Fprintf(out, "%8.1f  %d more\n", rest, more)
	fmt.Fprintln(out, "the slowest tests:")
	list := slowest(tests)
	for _, t := range list[:min(len(list), 10)] {
		fmt.Fprintf(out, "%8.1f  %s\n", t.seconds, t.what)
	}
	return err
}

func slowest(of map[string]float64) []took {
	list := make([]took, 0, len(of))
	for what, s := range of {
		list = append(list, took{what, s})
	}
	slices.SortFunc(list, func(a, b took) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.what, b.what))
	})
	return list
}

// short is a package's name without the module's.
func short(pkg string) string {
	return strings.TrimPrefix(strings.TrimPrefix(pkg, "github.com/muster-hpc/"), "muster/")
}
