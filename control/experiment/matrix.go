package experiment

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/plaintext"
)

// Bounds of a matrix: how many combinations are looked at, how many can be run, and
// how many launches there are.
const (
	mostCombinations = 100_000
	mostCells        = 1000
	mostSlots        = 10_000
)

// Make makes the plan of a file: its cells, blocks and looks. It reports everything that is
// wrong with the matrix. What depends on clusters and programs is not in it yet.
func Make(f File) (muster.ExperimentPlan, []muster.Problem) {
	p := muster.ExperimentPlan{
		Min: f.Min, Max: f.Max, Within: f.Within, Discard: f.Discard, Budget: f.Budget,
		Timeout: muster.Duration(f.Timeout), Walltime: muster.Duration(f.Walltime),
	}
	if p.Discard == nil {
		p.Discard = []muster.DiscardRule{}
	}
	if f.Seed != nil {
		p.Seed = *f.Seed
	} else {
		p.Seed = rand.Uint64() >> 1 //nolint:gosec // it decides an order, and is on record
	}
	m := matrix{file: f}
	size := m.size()
	if size > mostCombinations {
		return p, []muster.Problem{m.tooLarge(size)}
	}
	m.expand(&p)
	if len(p.Cells) > mostCells {
		m.problems = append(m.problems, m.tooLarge(float64(len(p.Cells))))
	}
	if len(p.Cells) == 0 && len(m.problems) == 0 {
		m.add("exclude", m.file.matrixAt, muster.ReasonContradiction, "take an exclusion out", "nothing is left of the matrix")
	}
	m.requests(&p)
	if bad := visits(&p); bad != nil {
		m.problems = append(m.problems, *bad)
	}
	if n := Slots(p); n > mostSlots && len(m.problems) == 0 {
		m.add("launches", m.file.matrixAt, muster.ReasonTooMany, "give fewer cells, or a smaller max", "%d cells have %d launches, and at most %d can be made", len(p.Cells), n, mostSlots)
	}
	p.Looks, p.Level = looks(p)
	return p, m.problems
}

type matrix struct {
	file     File
	problems []muster.Problem
	said     map[string]int // problems of cells, by text: where they stand
	counts   map[string]int
}

func (m *matrix) add(field, place string, why muster.Reason, hint, format string, args ...any) {
	m.problems = append(m.problems, muster.Problem{Field: field, Place: place, Reason: why, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// size is how many combinations there are; as a float, since it may be any number.
func (m *matrix) size() float64 {
	n := 1.0
	for _, f := range m.file.Factors {
		n *= float64(len(f.Values))
	}
	return n
}

func (m *matrix) tooLarge(n float64) muster.Problem {
	list := slices.Clone(m.file.Factors)
	slices.SortStableFunc(list, func(a, b Factor) int { return len(b.Values) - len(a.Values) })
	var words []string
	for _, f := range list[:min(3, len(list))] {
		words = append(words, fmt.Sprintf("%s has %d values", f.Name, len(f.Values)))
	}
	return muster.Problem{Field: "matrix", Place: m.file.matrixAt, Reason: muster.ReasonTooMany,
		Message: fmt.Sprintf("the matrix has %.0f cells, and at most %d can be run", n, mostCells),
		Hint:    "give fewer values, or make several experiments: " + strings.Join(words, ", ")}
}

// expand makes the cells, in the order of the factors. Cells that no exclusion matches and
// that contradict themselves are problems, each kind once.
func (m *matrix) expand(p *muster.ExperimentPlan) {
	m.said, m.counts = map[string]int{}, map[string]int{}
	used := make([]bool, len(m.file.Exclude))
	blocks := map[string]int{}
	at := make([]int, len(m.file.Factors))
	for {
		chosen := map[string]Value{}
		for i, f := range m.file.Factors {
			chosen[f.Name] = f.Values[at[i]]
		}
		if out := m.excluded(chosen, used); out {
			p.Excluded++
		} else if len(p.Cells) <= mostCells {
			m.cell(p, chosen, blocks)
		}
		i := len(at) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < len(m.file.Factors[i].Values) {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			break
		}
	}
	for i, e := range m.file.Exclude {
		if !used[i] {
			m.add(index("exclude", i), e.place, muster.ReasonContradiction, "correct it, or take it out", "it matches no cell of the matrix")
		}
	}
	for text, n := range m.counts {
		if n > 1 {
			m.problems[m.said[text]].Message += fmt.Sprintf(" (%d cells)", n)
		}
	}
}

func (m *matrix) excluded(chosen map[string]Value, used []bool) bool {
	out := false
	for i, e := range m.file.Exclude {
		match := true
		for name, values := range e.Match {
			v, there := chosen[name]
			match = match && there && slices.Contains(values, v.Text)
		}
		if match {
			used[i], out = true, true
		}
	}
	return out
}

// contradiction is a problem of a cell: it is said once, with the number of cells.
func (m *matrix) contradiction(kind, field, format string, args ...any) {
	if m.counts[kind]++; m.counts[kind] > 1 {
		return
	}
	m.said[kind] = len(m.problems)
	place := m.file.matrixAt
	for _, f := range m.file.Factors {
		if f.Name == field {
			place = f.place
		}
	}
	m.add("matrix."+field, place, muster.ReasonContradiction, "leave such cells out by exclude:, or change the factor", format, args...)
}

func (m *matrix) cell(p *muster.ExperimentPlan, chosen map[string]Value, blocks map[string]int) {
	c := muster.ExperimentCell{Factors: map[string]string{}}
	key := []string{}
	block := map[string]string{}
	for _, k := range factorKinds() {
		v, there := chosen[k.name]
		if !there {
			continue
		}
		c.Factors[k.name] = v.Text
		if k.block {
			key = append(key, k.name+"="+v.Text)
			if v.Text != "" {
				block[k.name] = v.Text
			}
			if m.file.Cluster != "" && v.Text != "" {
				m.contradiction("block "+k.name, k.name, "cluster %s is there already, and its %s cannot change", m.file.Cluster, k.name)
			}
		}
	}
	m.fill(&c, chosen)
	id := strings.Join(key, "\x00")
	b, known := blocks[id]
	if !known {
		b = len(p.Blocks)
		blocks[id] = b
		p.Blocks = append(p.Blocks, muster.ExperimentBlock{Name: blockName(block), Factors: block})
		if m.file.Cluster == "" {
			p.Blocks[b].Request = m.request(chosen)
		}
	}
	c.Block = b
	p.Cells = append(p.Cells, c)
}

func blockName(factors map[string]string) string {
	var words []string
	for _, name := range factorNames() {
		if v, ok := factors[name]; ok {
			words = append(words, name+"="+v)
		}
	}
	if len(words) == 0 {
		return "all"
	}
	return strings.Join(words, " ")
}

// fill says how the program of a cell is launched.
func (m *matrix) fill(c *muster.ExperimentCell, chosen map[string]Value) {
	c.Program, c.Class = chosen["program"].Text, chosen["class"].Text
	c.Ranks, c.PerNode, c.Threads = chosen["ranks"].Number, chosen["ranks_per_node"].Number, chosen["threads"].Number
	c.Binding, c.Stack, c.Args = chosen["binding"].Text, chosen["stack"].Text, slices.Clone(chosen["args"].List)
	c.Env = map[string]string{}
	mca := func(name, value string) { c.Env["OMPI_MCA_"+name] = value }
	if v := chosen["transport"].Text; v == "ucx" {
		mca("pml", "ucx")
		// Else Open MPI takes UCX for InfiniBand only, also where it is named. Releases 4 and 5 call it so.
		for _, name := range []string{"pml_ucx_tls", "pml_ucx_devices", "opal_common_ucx_tls", "opal_common_ucx_devices"} {
			mca(name, "any")
		}
	} else if v != "" {
		mca("pml", "ob1")
		mca("btl", "self,"+strings.TrimPrefix(v, "self,"))
	}
	if v := chosen["eager_limit"]; v.Number > 0 {
		for _, btl := range []string{"tcp", "vader", "sm"} {
			mca("btl_"+btl+"_eager_limit", v.Text)
		}
		c.Env["UCX_RNDV_THRESH"] = v.Text
	}
	if v := chosen["rendezvous"].Text; v != "" {
		c.Env["UCX_RNDV_SCHEME"] = v
	}
	for name, v := range chosen["mca"].Pairs {
		mca(name, v)
	}
	maps.Copy(c.Env, chosen["env"].Pairs)
	if len(c.Env) == 0 {
		c.Env = nil
	}
	switch placement := chosen["placement"].Text; {
	case placement == "spread" && c.Ranks == 0:
		m.contradiction("spread", "placement", "one rank a node needs the number of ranks")
	case placement == "spread" && c.PerNode == 0:
		c.PerNode = 1
	case placement == "dense" && c.PerNode > 0:
		m.contradiction("dense", "ranks_per_node", "placement dense and ranks_per_node %d contradict each other", c.PerNode)
	}
	if c.PerNode > 0 && c.Ranks > 0 && c.PerNode > c.Ranks {
		m.contradiction("per node", "ranks_per_node", "%d ranks a node are more than %d ranks", c.PerNode, c.Ranks)
	}
	m.linpack(c, chosen)
}

// linpack makes the arguments of hpl of its factors.
func (m *matrix) linpack(c *muster.ExperimentCell, chosen map[string]Value) {
	n, nb, grid := chosen["n"].Number, chosen["nb"].Number, chosen["grid"].Text
	if n == 0 && nb == 0 && grid == "" {
		return
	}
	if c.Program != "hpl" {
		m.contradiction("hpl", "program", "n, nb and grid are of hpl, not of %s", c.Program)
		return
	}
	if grid == "" && c.Ranks > 0 {
		p := 1
		for i := 1; i*i <= c.Ranks; i++ {
			if c.Ranks%i == 0 {
				p = i
			}
		}
		grid = fmt.Sprintf("%dx%d", p, c.Ranks/p)
	}
	g := gridForm.FindStringSubmatch(grid)
	switch {
	case n == 0:
		m.contradiction("hpl n", "n", "hpl needs n, the order of its matrix")
	case g == nil:
		m.contradiction("hpl ranks", "ranks", "hpl needs the number of ranks, or a grid")
	case len(c.Args) > 0:
		m.contradiction("hpl args", "args", "hpl takes n, nb and grid, and no other arguments")
	default:
		p, _ := strconv.Atoi(g[1])
		q, _ := strconv.Atoi(g[2])
		if c.Ranks == 0 {
			c.Ranks = p * q
		}
		if c.Ranks != p*q {
			m.contradiction("hpl grid", "grid", "a grid of %s has %d ranks, not %d", grid, p*q, c.Ranks)
		}
		if nb == 0 {
			nb = 192
		}
		c.Args = []string{strconv.Itoa(n), strconv.Itoa(nb), g[1], g[2]}
	}
}

// request is that of a block, in JSON.
func (m *matrix) request(chosen map[string]Value) string {
	tree := map[string]any{}
	merge(tree, m.file.Request)
	for _, k := range factorKinds() {
		v, there := chosen[k.name]
		if !there || !k.block || v.Text == "" {
			continue
		}
		var value any = v.Text
		if v.Tree != nil {
			value = v.Tree
		}
		for _, f := range slices.Backward(k.field) {
			value = map[string]any{f: value}
		}
		if part, ok := value.(map[string]any); ok {
			merge(tree, part)
		}
	}
	b, err := json.Marshal(tree)
	if err != nil {
		m.add("cluster", m.file.matrixAt, muster.ReasonBadSyntax, "write plain fields and values", "it cannot be written as a request")
	}
	return string(b)
}

// merge puts the fields of b into a, the inner ones one by one.
func merge(a, b map[string]any) {
	for k, v := range b {
		part, isMap := v.(map[string]any)
		if !isMap {
			a[k] = v
			continue
		}
		was, ok := a[k].(map[string]any)
		inner := map[string]any{}
		if ok {
			merge(inner, was)
		}
		merge(inner, part)
		a[k] = inner
	}
}

// requests gives each block as many nodes as its cells need, where the file does not say.
func (m *matrix) requests(p *muster.ExperimentPlan) {
	if m.file.Cluster != "" {
		return
	}
	for i := range p.Blocks {
		b := &p.Blocks[i]
		var tree map[string]any
		if json.Unmarshal([]byte(b.Request), &tree) != nil {
			continue
		}
		if _, ok := tree["nodes"]; ok {
			continue
		}
		need := 0
		for _, c := range p.Cells {
			if c.Block != i {
				continue
			}
			if c.PerNode == 0 || c.Ranks == 0 {
				need = 0
				break
			}
			need = max(need, (c.Ranks+c.PerNode-1)/c.PerNode)
		}
		if need == 0 {
			m.add("cluster.nodes", m.file.matrixAt, muster.ReasonRequired, "write cluster: {nodes: N}, or name one that is there: cluster: NAME", "it is not clear how many nodes the clusters of %s need", plaintext.Count(len(p.Blocks), "block"))
			return
		}
		tree["nodes"] = need
		if out, err := json.Marshal(tree); err == nil {
			b.Request = string(out)
		}
	}
}

// visits says how many launches a cell has while its block is visited once. Blocks are visited
// A B B A, so that each has as many launches early as late.
func visits(p *muster.ExperimentPlan) *muster.Problem {
	p.PerVisit = 1
	if len(p.Blocks) < 2 {
		return nil
	}
	p.PerVisit = (p.Min + 1) / 2
	if 2*p.PerVisit > p.Max {
		return &muster.Problem{Field: "launches", Reason: muster.ReasonContradiction, Message: fmt.Sprintf("%d launches cannot be shared by two visits of each block", p.Max),
			Hint: fmt.Sprintf("blocks are visited A B B A: give an even number, such as %d", 2*p.PerVisit)}
	}
	p.Max -= p.Max % (2 * p.PerVisit)
	return nil
}
