package fake

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"

	"github.com/muster-hpc/muster/agent/link"
)

// buffers are used again: a thousand agents read a thousand long answers.
type buffers struct{ pool sync.Pool }

// decode reads an answer as link.Decode does, but of the list of hosts in a
// configuration only the node's own, unless it is the head's: a real node reads
// the whole list on its own processor, but a thousand pretended nodes share
// one, which is then busy with nothing else.
func (p *buffers) decode(r io.Reader, limit int64, into any) error {
	buf, _ := p.pool.Get().(*bytes.Buffer)
	if buf == nil {
		buf = &bytes.Buffer{}
	}
	defer p.pool.Put(buf)
	buf.Reset()
	if _, err := buf.ReadFrom(io.LimitReader(r, limit+1)); err != nil || int64(buf.Len()) > limit {
		return link.Decode(io.MultiReader(bytes.NewReader(buf.Bytes()), r), limit, into) // it says what is wrong
	}
	return link.Decode(bytes.NewReader(lean(buf.Bytes())), limit, into)
}

// lean cuts the list of hosts in a configuration down to the node's own.
func lean(b []byte) []byte {
	var (
		key  = []byte(`"hosts":[`)
		node = []byte(`"node":`)
	)
	at := bytes.Index(b, key)
	if at < 0 || bytes.Contains(b[:at], []byte(`"head":true`)) {
		return b
	}
	name := bytes.LastIndex(b[:at], node)
	if name < 0 {
		return b
	}
	var own string
	if json.NewDecoder(bytes.NewReader(b[name+len(node):])).Decode(&own) != nil {
		return b
	}
	at += len(key)
	end := bytes.IndexByte(b[at:], ']') // hosts hold no lists
	if end < 0 {
		return b
	}
	list := b[at : at+end]
	from := bytes.Index(list, []byte(`{"name":"`+own+`",`))
	if from < 0 {
		return b
	}
	to := bytes.IndexByte(list[from:], '}')
	if to < 0 {
		return b
	}
	out := make([]byte, 0, len(b)-len(list)+to+1)
	out = append(out, b[:at]...)
	out = append(out, list[from:from+to+1]...)
	return append(out, b[at+end:]...)
}
