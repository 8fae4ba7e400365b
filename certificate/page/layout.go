package page

import (
	"math"
	"strings"
)

// Sizes in the drawing of a machine.
const (
	coreSide = 22.0
	partGap  = 6.0
	partHead = 17.0
	mostDraw = 4000 // parts of one machine: more is no machine
)

// box is a part with its place.
type box struct {
	part
	x, y, w, h float64
}

// topology draws a machine: boxes in boxes.
func topology(m part, title string) picture {
	p := picture{Title: title, Class: "wide", Caption: "What lies in one box shares it: the caches, the memory that is near, the socket. Numbers are those of the processors, as the kernel counts them; network cards lie with the memory that they are near to."}
	var boxes []box
	_, h := layout(&boxes, m, 0, 0, full-2)
	p.W, p.H = full, num(h+2)
	for _, b := range boxes {
		p.rect("part "+b.Kind, b.x+1, b.y+1, b.w, b.h, "")
		if b.Kind == "core" {
			p.text("cell mid", b.x+1+b.w/2, b.y+b.h/2+4.5, short(b.Label, 24))
		} else {
			p.text("label", b.x+8, b.y+13.5, short(join(" · ", b.Label, b.Note), int(b.w/5.4)))
		}
	}
	p.Text = strings.TrimPrefix(m.Label+": "+m.Note+". ", ": ") + inWords(m)
	return p
}

// layout finds the places of a part and of all in it, no wider than most.
func layout(out *[]box, p part, x, y, most float64) (w, h float64) {
	if len(*out) > mostDraw {
		return 0, 0
	}
	if p.Kind == "core" {
		w = max(coreSide, 7+5.7*float64(len(p.Label)))
		*out = append(*out, box{p, x, y, w, coreSide})
		return w, coreSide
	}
	at := len(*out)
	*out = append(*out, box{part: p, x: x, y: y})
	inner := most - 2*partGap
	beside := fitting(p.Parts, inner)
	gap := partGap
	if len(p.Parts) > 0 && p.Parts[0].Kind == "core" {
		gap = 3
	}
	cx, cy, row := x+partGap, y+partHead+2, 0.0
	for i, q := range p.Parts {
		if i > 0 && i%beside == 0 {
			cx, cy, row = x+partGap, cy+row+gap, 0
		}
		qw, qh := layout(out, q, cx, cy, inner)
		cx += qw + gap
		row = max(row, qh)
		w = max(w, cx-gap-x)
	}
	w, h = max(w+partGap, 96), cy+row+partGap-y
	if p.Kind == "nic" {
		w = min(most, max(w, 16+5.4*float64(len(p.Label)+3+len(p.Note))))
	}
	if p.Kind == "numa" || p.Kind == "package" {
		w = max(w, 132)
	}
	(*out)[at].w, (*out)[at].h = w, h
	return w, h
}

// fitting is how many parts stand beside each other: as many as fit, and as many in
// each row. Cores stand in rows that are not too long.
func fitting(parts []part, inner float64) int {
	widest, gap := 1.0, partGap
	for _, q := range parts {
		var trial []box
		w, _ := layout(&trial, q, 0, 0, inner)
		widest = max(widest, w)
		if q.Kind == "core" {
			gap = 3
		}
	}
	n := len(parts)
	most := max(1, int((inner+gap)/(widest+gap)))
	if n > 8 && parts[0].Kind == "core" {
		most = min(most, int(math.Ceil(math.Sqrt(float64(2*n)))))
	}
	rows := (n + most - 1) / most
	return max(1, (n+max(rows, 1)-1)/max(rows, 1))
}
