package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/muster-hpc/muster"
)

// confirm asks the person at a terminal for a word before something that cannot be undone.
// Without one, and for programs, only --yes confirms.
type confirm struct {
	app   *app
	yes   bool
	lines *bufio.Reader
}

func (a *app) confirming(yes bool) *confirm {
	in := a.env.In
	if in == nil {
		in = strings.NewReader("")
	}
	return &confirm{app: a, yes: yes, lines: bufio.NewReader(in)}
}

// asks reports whether there is a person to ask.
func (q *confirm) asks() bool {
	return !q.yes && q.app.output == "" && q.app.env.terminal(q.app.env.In)
}

// word wants one of some words for what is about to happen. Returns EInvalid where it is
// refused, or nobody can be asked.
func (q *confirm) word(what string, words ...string) error {
	if q.yes {
		return nil
	}
	refused := muster.Errorf(muster.EInvalid, "%s", what).Because(muster.ReasonNotConfirmed)
	if !q.asks() {
		return refused.WithHint("add --yes if that is meant")
	}
	fmt.Fprintf(q.app.env.Err, "%s. Type %s to go on: ", clean(what), clean(words[0]))
	line, err := q.lines.ReadString('\n')
	if err != nil && err != io.EOF {
		return muster.Errorf(muster.EInvalid, "the answer cannot be read").Because(muster.ReasonNotConfirmed).WithHint("add --yes if it is meant").Wrap(err)
	}
	for _, w := range words {
		if strings.TrimSpace(line) == w {
			return nil
		}
	}
	return refused.WithHint("nothing was changed")
}
