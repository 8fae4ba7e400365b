package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
)

// experimentContent is all that the page of an experiment says.
type experimentContent struct {
	Style           template.CSS
	Policy          string
	Name, Headline  string
	Class, Sign     string
	Summary         string
	Facts           []fact
	Relative, Scale []picture
	Use             []picture
	Traffic         []experimentTable
	HPL             []experimentTable
	Virtual         []experimentTable
	Emulated        bool
	Head            []string
	Rows            []experimentRow
	Plan            []fact
	Launches        []experimentLaunch
	Meanwhile       []picture
	Undrawn         int
	Text            string
}

type experimentRow struct {
	Class string
	Cells []string
}

// experimentTable is a table with a title and what follows from it.
type experimentTable struct {
	Title, Text string
	Facts       []fact
	Head        []string
	Rows        [][]string
}

type experimentLaunch struct {
	Class string
	Cells []string
}

// WriteExperiment writes what an experiment found as one HTML file that needs nothing else. An
// error is one of w.
func WriteExperiment(w io.Writer, e muster.Experiment, r muster.ExperimentResult, launches []muster.ExperimentLaunch) error {
	css, err := files.ReadFile("page.css")
	if err != nil {
		return err
	}
	t, err := template.New("experiment.html").Funcs(template.FuncMap{
		"time": when, "percent": percent, "class": gradeClass, "words": gradeText, "sign": gradeSign,
	}).ParseFS(files, "page.html", "experiment.html")
	if err != nil {
		return err
	}
	v := experimentView(e, r, launches)
	v.Style = template.CSS(css)
	sum := sha256.Sum256(css)
	v.Policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	var out bytes.Buffer
	if err := t.Execute(&out, v); err != nil {
		return err
	}
	_, err = w.Write(out.Bytes())
	return err
}

func experimentView(e muster.Experiment, r muster.ExperimentResult, launches []muster.ExperimentLaunch) experimentContent {
	v := experimentContent{Name: cleanText(e.Name), Class: "unknown", Sign: "?", Headline: "It is not complete."}
	switch e.State {
	case muster.ExperimentDone:
		v.Class, v.Sign, v.Headline = "pass", "✓", "Complete"
	case muster.ExperimentFailed, muster.ExperimentStopped:
		v.Class, v.Sign, v.Headline = "low", "▼", "Ended before it was complete"
	}
	v.Summary = cleanText(e.Outcome)
	p := e.Plan
	add := func(list *[]fact, name, text string) {
		if text != "" {
			*list = append(*list, fact{Name: name, Text: cleanText(text)})
		}
	}
	add(&v.Facts, "Project", e.Project)
	add(&v.Facts, "By", e.By)
	add(&v.Facts, "When", lasted(e.Created, e.Ended))
	add(&v.Facts, "Varied", strings.Join(r.Varies, ", "))
	add(&v.Facts, "Launches", fmt.Sprintf("%d of at most %d; %d failed, %d discarded", r.Launches, r.Planned, r.Failed, r.Discarded))
	add(&v.Facts, "Took", number(e.Spent)+" machine-hours")

	v.pictures(r)
	v.table(r)
	v.traffic(r)
	v.hpl(r)
	v.virtual(r)

	add(&v.Plan, "Order", fmt.Sprintf("random, seed %d", p.Seed))
	visits := "one cluster"
	if len(p.Blocks) > 1 {
		visits = fmt.Sprintf("%d blocks, visited A B B A, with %s of each cell a visit", len(p.Blocks), count(p.PerVisit, "launch", "launches"))
	}
	add(&v.Plan, "Blocks", visits)
	stop := fmt.Sprintf("%s of each cell", count(p.Max, "launch", "launches"))
	if p.Within > 0 {
		stop = fmt.Sprintf("%d to %d launches of each cell; looked at after %s; ends when every interval is within %s", p.Min, p.Max, strings.Trim(fmt.Sprint(p.Looks), "[]"), percent(p.Within))
	}
	add(&v.Plan, "Stop rule", stop)
	rules := []string{}
	for _, d := range p.Discard {
		rules = append(rules, string(d))
	}
	add(&v.Plan, "Discarded by", cmp.Or(strings.Join(rules, ", "), "nothing"))
	if p.Budget > 0 {
		add(&v.Plan, "Budget", number(p.Budget)+" machine-hours")
	}
	for _, line := range strings.Split(e.Text, "\n") {
		v.Text += cleantext.Line(strings.ReplaceAll(line, "\t", "    ")) + "\n"
	}
	v.listed(e, r, launches)
	return v
}

// cellLabel names a cell by the factors that vary, but for some.
func cellLabel(row muster.ExperimentRow, varies []string, but ...string) string {
	var words []string
	for _, name := range varies {
		if !slices.Contains(but, name) {
			words = append(words, strings.ReplaceAll(name, "_", " ")+" "+cmp.Or(row.Factors[name], "usual"))
		}
	}
	return cleanText(strings.Join(words, ", "))
}

// workOf is what cells that are drawn together compute.
func workOf(row muster.ExperimentRow) string {
	words := []string{row.Factors["program"]}
	for _, name := range []string{"class", "n", "nb", "args"} {
		if row.Factors[name] != "" {
			words = append(words, strings.TrimSpace(name+" "+row.Factors[name]))
		}
	}
	return cleanText(strings.Join(words, ", "))
}

// barRow is one bar of a picture of an experiment.
type barRow struct {
	label, text string
	parts       []float64 // one beside the other
	low, high   float64   // of the interval; both 0: none
}

func (v *experimentContent) pictures(r muster.ExperimentResult) {
	var works []string
	of := map[string][]muster.ExperimentRow{}
	for _, row := range r.Rows {
		w := workOf(row)
		if of[w] == nil {
			works = append(works, w)
		}
		of[w] = append(of[w], row)
	}
	for _, w := range works {
		var relative, scale, use []barRow
		for _, row := range of[w] {
			label := cmp.Or(cellLabel(row, r.Varies, "program", "class", "n", "nb", "args"), "all")
			if row.Relative != nil {
				relative = append(relative, ratioRow(label, *row.Relative))
			}
			if row.Speedup != nil {
				one := ratioRow(label, *row.Speedup)
				one.text += ", " + percent(row.Efficiency) + " efficient"
				scale = append(scale, one)
			}
			if row.User != nil && row.System != nil && row.Waiting != nil {
				use = append(use, barRow{label: label, parts: []float64{*row.User, *row.System, *row.Waiting},
					text: fmt.Sprintf("%s user, %s system, %s waiting", percent(*row.User), percent(*row.System), percent(*row.Waiting))})
			}
		}
		if len(relative) > 1 {
			v.Relative = append(v.Relative, rowBars(w, "Times as fast as the slowest of the same work on as many ranks.", relative))
		}
		if len(scale) > 1 {
			v.Scale = append(v.Scale, rowBars(w, "Speed-up over the fewest ranks.", scale))
		}
		if len(use) > 0 {
			v.Use = append(v.Use, rowBars(w, "Where the time of its cores went: user, system, and the rest, in which they waited.", use))
		}
	}
}

func ratioRow(label string, r muster.ExperimentRatio) barRow {
	b := barRow{label: label, parts: []float64{r.Value}, text: number(r.Value)}
	if i := r.Interval; i != nil {
		b.low, b.high = i.Low, i.High
		b.text += fmt.Sprintf(" (%s to %s)", number(i.Low), number(i.High))
	}
	return b
}

// rowBars draws bars with their intervals, one a row. So many at most that a page can hold.
func rowBars(title, caption string, rows []barRow) picture {
	const left, right, top, each = 300.0, 640.0, 8.0, 19.0
	p := picture{Title: title, Caption: caption, W: full, Class: "wide"}
	if len(rows) > 2*mostRows {
		p.Caption += fmt.Sprintf(" The first %d of %d.", 2*mostRows, len(rows))
		rows = rows[:2*mostRows]
	}
	most := 0.0
	for _, r := range rows {
		sum := 0.0
		for _, v := range r.parts {
			sum += v
		}
		most = max(most, sum, min(r.high, 2*sum))
	}
	a := axis{lo: 0, hi: most * 1.02, from: left, to: right}
	bottom := top + each*float64(len(rows))
	for _, v := range a.ticks(5) {
		p.line("grid", a.at(v), top, a.at(v), bottom)
		p.text("tick mid", a.at(v), bottom+13, tick(v))
	}
	var words []string
	for i, r := range rows {
		y := top + each*(float64(i)+0.5)
		p.text("label end", left-7, y+4, short(r.label, 48))
		from := 0.0
		for k, v := range r.parts {
			p.rect("bar "+[]string{"pass", "unstable", "unknown"}[k%3], a.at(from), y-each/4, a.at(from+v)-a.at(from), each/2, r.label+": "+r.text)
			from += v
		}
		if r.high > 0 {
			p.rect("interval", a.at(r.low), y-2, max(a.at(r.high)-a.at(r.low), 1.5), 4, "")
		}
		p.text("value", right+8, y+4, short(r.text, 44))
		words = append(words, r.label+": "+r.text)
	}
	p.Text = strings.Join(words, "; ")
	p.H = num(bottom + 20)
	return p
}

func (v *experimentContent) table(r muster.ExperimentResult) {
	for _, name := range r.Varies {
		v.Head = append(v.Head, strings.ReplaceAll(name, "_", " "))
	}
	v.Head = append(v.Head, "Figure", "Median", "Interval", "Extremes", "Launches", "Times as fast", "Speed-up", "Efficiency", "With discarded", "Failed")
	for _, row := range r.Rows {
		one := experimentRow{Class: "pass"}
		for _, name := range r.Varies {
			one.Cells = append(one.Cells, cmp.Or(cleanText(row.Factors[name]), "usual"))
		}
		k := row.Kept
		figure := func(value float64) string { return human(value, cleanText(row.Unit)) }
		texts := make([]string, 9)
		if k.N > 0 {
			texts[0], texts[1] = cleanText(row.Name), figure(k.Median)
			texts[3] = between(k.Lowest, k.Highest, cleanText(row.Unit))
		}
		if k.Interval != nil {
			texts[2] = fmt.Sprintf("%s (%s)", between(k.Interval.Low, k.Interval.High, cleanText(row.Unit)), percent(k.Interval.Level))
		}
		texts[4] = fmt.Sprint(k.N)
		if row.Relative != nil {
			texts[5] = ratioRow("", *row.Relative).text
		}
		if row.Speedup != nil {
			texts[6], texts[7] = ratioRow("", *row.Speedup).text, percent(row.Efficiency)
		}
		if row.All.N != k.N {
			texts[8] = fmt.Sprintf("%s, %s", figure(row.All.Median), count(row.All.N, "launch", "launches"))
		}
		failed := ""
		if row.Failed > 0 || row.GivenUp != "" {
			one.Class = "low"
			failed = cleanText(fmt.Sprintf("%d: %s", row.Failed, cmp.Or(row.GivenUp, row.Problem)))
		}
		one.Cells = append(append(one.Cells, texts...), failed)
		v.Rows = append(v.Rows, one)
	}
}

func (v *experimentContent) listed(e muster.Experiment, r muster.ExperimentResult, list []muster.ExperimentLaunch) {
	for _, l := range list {
		if l.Cell < 0 || l.Cell >= len(e.Plan.Cells) {
			continue
		}
		one := experimentLaunch{Class: "pass"}
		figure := ""
		if l.Figure != nil {
			figure = human(l.Figure.Value, cleanText(l.Figure.Unit))
		}
		var rules []string
		for _, d := range l.Discarded {
			rules = append(rules, string(d))
		}
		if len(rules) > 0 {
			one.Class = "unstable"
		}
		if l.State == muster.ProgramRunFailed {
			one.Class = "low"
		}
		one.Cells = []string{fmt.Sprint(l.N + 1), when(l.Began), cmp.Or(cellLabel(muster.ExperimentRow{Factors: e.Plan.Cells[l.Cell].Factors}, r.Varies), "all"), cleanText(string(l.Run)),
			string(l.State), figure, strings.Join(rules, ", "), cleanText(l.Problem)}
		v.Launches = append(v.Launches, one)
		v.meanwhile(l, one.Cells[2])
	}
}

// mostMeanwhile launches have a picture of their processors; JSON has all.
const mostMeanwhile = 60

// meanwhile draws how busy the processors were during a launch.
func (v *experimentContent) meanwhile(l muster.ExperimentLaunch, cell string) {
	series := slices.Clone(l.UseSeries)
	for i := range series {
		series[i].Node = cleanText(series[i].Node)
	}
	p, ok := use(series)
	switch {
	case !ok:
	case len(v.Meanwhile) == mostMeanwhile:
		v.Undrawn++
	default:
		p.Title, p.Caption = fmt.Sprintf("Launch %d: %s", l.N+1, cell), ""
		v.Meanwhile = append(v.Meanwhile, p)
	}
}
