package series

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// entry is one line of a block.
type entry struct {
	name    string // of a node, or one of the Entry names
	machine string // that filled the node last
	cell
}

// A block is: format, number of columns, number of entries, masks of the
// columns that are there and of those whose maximum differs from their mean,
// then the rest deflated: names, machines, and each column's numbers as
// float32 with their bytes apart from each other, which packs far better.
const (
	blockFormat = 1
	// maxEntries bounds what a damaged block can make us hold.
	maxEntries  = 1 << 17
	maxInflated = 64 << 20
)

var errBlock = errors.New("series: a block is damaged")

// packer makes blocks. Not for concurrent use.
type packer struct {
	raw   []byte
	out   bytes.Buffer
	flate *flate.Writer
}

// pack renders entries. What it returns is good until the next call.
func (p *packer) pack(list []entry) ([]byte, error) {
	var there, peaks uint64
	for i := range list {
		for c := range columns {
			if list[i].sum[c] != 0 || list[i].max[c] != 0 {
				there |= 1 << c
			}
		}
	}
	p.raw = p.raw[:0]
	for i := range list {
		p.raw = text(p.raw, list[i].name)
	}
	for i := range list {
		p.raw = text(p.raw, list[i].machine)
	}
	p.column(len(list), func(i int) float32 { return float32(list[i].gauge) })
	p.column(len(list), func(i int) float32 { return float32(list[i].rate) })
	mean := func(i, c int) float32 {
		m, _ := list[i].mean(c)
		return round(m)
	}
	for c := range columns {
		if there&(1<<c) == 0 {
			continue
		}
		p.column(len(list), func(i int) float32 { return mean(i, c) })
		for i := range list {
			if list[i].weight(c) > 0 && round(list[i].max[c]) != mean(i, c) {
				peaks |= 1 << c
				break
			}
		}
		if peaks&(1<<c) != 0 {
			p.column(len(list), func(i int) float32 { return round(list[i].max[c]) })
		}
	}
	p.out.Reset()
	head := []byte{blockFormat}
	head = binary.AppendUvarint(head, columns)
	head = binary.AppendUvarint(head, uint64(len(list)))
	head = binary.AppendUvarint(head, there)
	head = binary.AppendUvarint(head, peaks)
	p.out.Write(head)
	if p.flate == nil {
		p.flate, _ = flate.NewWriter(&p.out, flate.BestSpeed) // fails for a bad level only
	} else {
		p.flate.Reset(&p.out)
	}
	if _, err := p.flate.Write(p.raw); err != nil {
		return nil, err
	}
	err := p.flate.Close()
	return p.out.Bytes(), err
}

// column appends numbers, the bytes of each place together.
func (p *packer) column(n int, at func(int) float32) {
	start := len(p.raw)
	p.raw = append(p.raw, make([]byte, 4*n)...)
	b := p.raw[start:]
	for i := range n {
		v := math.Float32bits(at(i))
		b[i], b[n+i], b[2*n+i], b[3*n+i] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
	}
}

// round keeps 16 bits of a number's fraction: an error below one in 100,000,
// and a last byte that packs to nothing.
func round(x float64) float32 {
	const drop = 7
	v := math.Float32bits(float32(x))
	v += 1 << (drop - 1)
	return math.Float32frombits(v &^ (1<<drop - 1))
}

func text(b []byte, s string) []byte {
	s = s[:min(len(s), 255)]
	return append(append(b, byte(len(s))), s...)
}

// unpacker reads blocks. Not for concurrent use.
type unpacker struct {
	src   bytes.Reader
	flate io.ReadCloser
	raw   bytes.Buffer
}

// each calls f for every entry of a block, in order. The entry is good until f
// returns. A block that is not whole is errBlock, after any number of calls.
func (u *unpacker) each(block []byte, f func(*entry)) error {
	if len(block) == 0 || block[0] != blockFormat {
		return errBlock
	}
	b := block[1:]
	var head [4]uint64
	for i := range head {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return errBlock
		}
		head[i], b = v, b[n:]
	}
	cols, n, there, peaks := head[0], int(head[1]), head[2], head[3]
	if cols > 64 || head[1] > maxEntries || peaks&^there != 0 {
		return errBlock
	}
	if err := u.inflate(b); err != nil {
		return err
	}
	rest := u.raw.Bytes()
	// The names of all entries as one string: parts of it cost nothing.
	names, rest, err := texts(rest, n)
	if err != nil {
		return err
	}
	machines, rest, err := texts(rest, n)
	if err != nil {
		return err
	}
	next := func() []byte {
		if len(rest) < 4*n {
			err = errBlock
			return nil
		}
		b := rest[:4*n]
		rest = rest[4*n:]
		return b
	}
	gauge, rate := next(), next()
	var means, maxes [64][]byte
	for c := range int(cols) {
		if there&(1<<c) != 0 {
			means[c] = next()
			maxes[c] = means[c]
		}
		if peaks&(1<<c) != 0 {
			maxes[c] = next()
		}
	}
	if err != nil || len(rest) != 0 {
		return errBlock
	}
	at := func(b []byte, i int) float64 {
		v := uint32(b[i])<<24 | uint32(b[n+i])<<16 | uint32(b[2*n+i])<<8 | uint32(b[3*n+i])
		return sane(float64(math.Float32frombits(v)))
	}
	for i := range n {
		e := entry{name: names[i], machine: machines[i]}
		e.gauge, e.rate = at(gauge, i), at(rate, i)
		for c := range min(int(cols), columns) {
			if means[c] == nil {
				continue
			}
			m := at(means[c], i)
			e.sum[c], e.max[c] = m*e.weight(c), max(m, at(maxes[c], i))
		}
		f(&e)
	}
	return nil
}

func (u *unpacker) inflate(b []byte) error {
	u.src.Reset(b)
	if u.flate == nil {
		u.flate = flate.NewReader(&u.src)
	} else if err := u.flate.(flate.Resetter).Reset(&u.src, nil); err != nil {
		return errBlock
	}
	u.raw.Reset()
	n, err := u.raw.ReadFrom(io.LimitReader(u.flate, maxInflated+1))
	if err != nil || n > maxInflated {
		return errBlock
	}
	return nil
}

// texts reads n texts.
func texts(b []byte, n int) (out []string, rest []byte, err error) {
	end := 0
	for range n {
		if end >= len(b) || end+1+int(b[end]) > len(b) {
			return nil, nil, errBlock
		}
		end += 1 + int(b[end])
	}
	all := string(b[:end])
	out = make([]string, n)
	for i, at := 0, 0; i < n; i++ {
		size := int(all[at])
		out[i] = all[at+1 : at+1+size]
		at += 1 + size
	}
	return out, b[end:], nil
}
