package analysis

import (
	"github.com/muster-hpc/muster/measure/compare"
)

// Remember gives figures the history of their class. of reports what machines of a
// class show, as compare.Class does; nil or empty where there is too little. Figures
// between nodes and of all of them have one only where all nodes are of one class.
func (c *Collected) Remember(nodes []Node, of func(class string) map[compare.Key]compare.ClassFigure) {
	known := map[string]map[compare.Key]compare.ClassFigure{}
	for _, n := range nodes {
		if _, ok := known[n.Class]; !ok {
			known[n.Class] = of(n.Class)
		}
	}
	for i := range c.Nodes {
		f := &c.Nodes[i]
		if len(f.Series) == 0 {
			continue
		}
		class := nodes[f.Series[0].Node].Class
		f.History = history(known[class], compare.Key{Name: f.Name, Size: f.Size, Threads: f.Threads}, class)
	}
	if len(known) != 1 {
		return
	}
	class := nodes[0].Class
	for i := range c.Whole {
		f := &c.Whole[i]
		f.History = history(known[class], compare.Key{Name: f.Name, Size: f.Size, Threads: f.Threads}, class)
	}
	for i := range c.Fabrics {
		f := &c.Fabrics[i]
		f.History = map[Distance]*History{}
		for _, l := range f.Links {
			if _, ok := f.History[l.Distance]; ok {
				continue
			}
			if h := history(known[class], compare.Key{Name: f.Name, Size: f.Size, Distance: string(l.Distance)}, class); h != nil {
				f.History[l.Distance] = h
			}
		}
	}
}

func history(known map[compare.Key]compare.ClassFigure, k compare.Key, class string) *History {
	f, ok := known[k]
	if !ok { // what was measured when the site knew fewer levels
		k.Distance = string(Distance(k.Distance).Coarse())
		f, ok = known[k]
	}
	if !ok {
		return nil
	}
	return &History{Median: f.Median, Spread: f.Spread, Apart: f.Apart, Text: f.String() + " of class " + class}
}
