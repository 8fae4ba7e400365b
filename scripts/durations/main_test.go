package main

import (
	"strings"
	"testing"
)

const said = `{"Action":"start","Package":"github.com/muster-hpc/muster/store"}
{"Action":"output","Package":"github.com/muster-hpc/muster/store","Test":"TestA","Output":"a says\n"}
{"Action":"output","Package":"github.com/muster-hpc/muster/store","Test":"TestB","Output":"b says\n"}
{"Action":"pass","Package":"github.com/muster-hpc/muster/store","Test":"TestA","Elapsed":0.5}
{"Action":"fail","Package":"github.com/muster-hpc/muster/store","Test":"TestB","Elapsed":2.5}
{"Action":"output","Package":"github.com/muster-hpc/muster/store","Output":"FAIL\n"}
{"Action":"fail","Package":"github.com/muster-hpc/muster/store","Elapsed":3}
{"ImportPath":"github.com/muster-hpc/muster/place","Action":"build-output","Output":"place.go:1: no\n"}
{"Action":"pass","Package":"github.com/muster-hpc/muster","Test":"TestC/part","Elapsed":9}
{"Action":"pass","Package":"github.com/muster-hpc/muster","Elapsed":0.25}
go: something plain
`

// What a test said is shown when it failed, and only then.
func TestFollow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := follow(strings.NewReader(said), &out); err != nil {
		t.Fatal(err)
	}
	if want := "b says\nFAIL\nFAIL     3.0 s  store\nplace.go:1: no\nok       0.2 s  muster\ngo: something plain\n"; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestSummarize(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := summarize(strings.NewReader(said), &out); err != nil {
		t.Fatal(err)
	}
	want := "seconds by package:\n     3.0  store\n     0.2  1 more\nthe slowest tests:\n     2.5  store TestB\n     0.5  store TestA\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
