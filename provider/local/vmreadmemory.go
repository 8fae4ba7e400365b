package local

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-hpc/muster"
)

// numaArea is what numa_maps says of memory of one policy and one size of pages, all areas together.
type numaArea struct {
	policy string
	page   int64 // bytes
}

// parseNumaMaps counts the pages of each memory node.
func parseNumaMaps(in io.Reader) (map[numaArea]map[int]int64, error) {
	out := map[numaArea]map[int]int64{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 2 {
			continue
		}
		a := numaArea{policy: f[1]}
		pages := map[int]int64{}
		for _, word := range f[2:] {
			key, value, ok := strings.Cut(word, "=")
			if !ok {
				continue
			}
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 || n > 1<<52 {
				continue
			}
			if key == "kernelpagesize_kB" && n < 1<<40 {
				a.page = n << 10
			}
			if rest, ok := strings.CutPrefix(key, "N"); ok {
				if node, err := strconv.Atoi(rest); err == nil && node >= 0 && node < 1<<16 {
					pages[node] += n
				}
			}
		}
		if out[a] == nil {
			out[a] = map[int]int64{}
		}
		for node, n := range pages {
			out[a][node] += n
		}
	}
	return out, lines.Err()
}

// memory looks in which memory nodes its memory lies. Ordinary pages are there once they were written.
func (r *vmReading) memory() {
	const read = "/proc/{pid}/numa_maps"
	if !r.plan.Tuned {
		size, err := taskStatus(r.pid, r.pid, "VmSize")
		kb, _, _ := strings.Cut(size, " ")
		n, also := strconv.ParseInt(kb, 10, 64)
		r.add("memory", "", "VmSize "+size, "/proc/{pid}/status", err == nil && also == nil && n >= r.plan.Memory>>10, again)
		return
	}
	f, err := os.Open(filepath.Join(r.dir, "numa_maps"))
	if err != nil {
		r.add("memory", "", err.Error(), read, false, "use a kernel with CONFIG_NUMA")
		return
	}
	defer func() { _ = f.Close() }()
	areas, err := parseNumaMaps(f)
	if err != nil {
		r.add("memory", "", err.Error(), read, false, again)
		return
	}
	var found []string
	holds := true
	for _, n := range r.plan.MemoryNodes {
		if n.Memory == 0 || n.Host == nil {
			continue
		}
		policy := fmt.Sprintf("bind:%d", *n.Host)
		there, bound := false, int64(0)
		for _, a := range slices.SortedFunc(maps.Keys(areas), func(a, b numaArea) int { return strings.Compare(a.policy, b.policy) }) {
			if a.policy != policy || r.plan.PageSize > 0 && a.page != r.plan.PageSize {
				continue
			}
			there = true
			for node, pages := range areas[a] {
				if node != *n.Host && pages > 0 {
					holds = false
					found = append(found, fmt.Sprintf("%d pages in memory node %d", pages, node))
					continue
				}
				bound += pages
			}
		}
		holds = holds && there && (r.plan.PageSize == 0 || bound == n.Pages)
		text := policy
		switch {
		case !there:
			text = "nothing is bound to memory node " + strconv.Itoa(*n.Host)
		case r.plan.PageSize > 0:
			text += fmt.Sprintf(" N%d=%d kernelpagesize_kB=%d", *n.Host, bound, r.plan.PageSize>>10)
		}
		found = append(found, text)
	}
	r.add("memory", "", strings.Join(found, "; "), read, holds, again)
}

// pages looks how much of its memory lies in huge pages.
func (r *vmReading) pages() {
	if !r.plan.Tuned || slices.ContainsFunc(r.out, func(f muster.VMFact) bool { return f.Name == "huge-pages" }) {
		return // said already
	}
	text, err := taskStatus(r.pid, r.pid, "HugetlbPages")
	kb, _, _ := strings.Cut(text, " ")
	n, also := strconv.ParseInt(kb, 10, 64)
	want := int64(0)
	value := planned(r.plan, "huge-pages")
	if r.plan.PageSize > 0 {
		want = r.plan.Memory >> 10
	}
	if err != nil {
		text = err.Error()
	}
	r.add("huge-pages", value, "HugetlbPages "+text, "/proc/{pid}/status", err == nil && also == nil && n == want, again)
}
