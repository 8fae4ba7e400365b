package tuning

import (
	"fmt"
	"slices"
)

// Bounds of launches. Six of each of two settings are the fewest that are compared; more than 20
// are not needed for differences that matter.
const (
	leastConfirm = 6
	mostConfirm  = 20
	mostRepeats  = 5
	combined     = 3 // default, the best alone, the winners together
)

// Least is the smallest number of launches within which anything can be searched: the default and
// one setting once, and the confirmation.
const Least = 2 + 2*leastConfirm

// Plan is how launches are divided.
type Plan struct {
	// Budget is how many there are at most, in all stages together.
	Budget int
	// Settings are tried beside the default, each Repeats times.
	Settings []Setting
	Repeats  int
}

// Make divides launches: first every setting by itself beside the default, then the winners
// together, then the best against the default. Settings for which the launches do not suffice
// are left out, the last ones first.
func Make(budget int, settings []Setting) (p Plan, left []Left, err error) {
	if budget < Least {
		return p, nil, fmt.Errorf("%d launches are too few: at least %d are needed", budget, Least)
	}
	p = Plan{Budget: budget, Settings: slices.Clone(settings), Repeats: 1}
	for p.most() > budget {
		last := p.Settings[len(p.Settings)-1]
		p.Settings = p.Settings[:len(p.Settings)-1]
		left = append(left, Left{last.Name(), "the budget does not hold it"})
	}
	// Half of the launches, at most, search.
	for p.Repeats < mostRepeats {
		more := p
		more.Repeats++
		if more.most() > budget || more.searching() > budget/2 {
			break
		}
		p = more
	}
	return p, left, nil
}

// searching is how many launches there are at most before the confirmation.
func (p Plan) searching() int {
	n := (len(p.Settings) + 1) * p.Repeats
	if p.factors() > 1 {
		n += combined * p.Repeats
	}
	return n
}

func (p Plan) factors() int {
	var list []string
	for _, s := range p.Settings {
		for f := range s.Levels {
			if !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	return len(list)
}

func (p Plan) most() int { return p.searching() + 2*leastConfirm }

// Search are the cells of the first stage: the default, and each setting by itself.
func (p Plan) Search() []Setting { return append([]Setting{{}}, p.Settings...) }

// Confirm is how many launches the default and the best have each, after so many were made.
func (p Plan) Confirm(made int) int { return min(mostConfirm, (p.Budget-made)/2) }

// worthwhile is by how much a setting has to be better than the default in the search.
const worthwhile = 1.01

// Speeds are how fast settings were, by key: larger is better. One that showed nothing is not there.
type Speeds map[string]float64

// Combine are the cells of the second stage, the default among them: the best level of each factor that
// is better than the default, together, and the best of them alone. With winners in one factor only there is
// nothing to combine: best is the candidate. Without any it is nil.
func Combine(settings []Setting, speeds Speeds) (cells []Setting, best *Setting) {
	usual := speeds[Setting{}.Key()]
	var winners []Setting
	for _, f := range Factors() {
		var top *Setting
		for _, s := range settings {
			if _, of := s.Levels[f]; of && speeds[s.Key()] > usual*worthwhile && (top == nil || speeds[s.Key()] > speeds[top.Key()]) {
				top = &s
			}
		}
		if top == nil {
			continue
		}
		winners = append(winners, *top)
		if best == nil || speeds[top.Key()] > speeds[best.Key()] {
			best = top
		}
	}
	if len(winners) < 2 {
		return nil, best
	}
	return []Setting{{}, *best, Together(winners...)}, best
}

// Best is the fastest of cells if it is better than the default, the first of them; else nil.
func Best(cells []Setting, speeds Speeds) (best *Setting) {
	usual := speeds[cells[0].Key()]
	for _, s := range cells[1:] {
		if v := speeds[s.Key()]; v > usual*worthwhile && (best == nil || v > speeds[best.Key()]) {
			best = &s
		}
	}
	return best
}
