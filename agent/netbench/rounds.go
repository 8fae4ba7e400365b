package netbench

import (
	"fmt"
	"strconv"
	"strings"
)

// pair is two ranks. The first one asks, the second one answers.
type pair struct{ a, b int }

// parseRounds reads pairs of ranks, "0-1 2-3/0-2 1-3": those of a round are measured
// at the same time, so none may have a rank twice.
func parseRounds(text string, ranks int) ([][]pair, error) {
	var rounds [][]pair
	for i, part := range strings.Split(text, "/") {
		var round []pair
		busy := map[int]bool{}
		for _, word := range strings.Fields(part) {
			first, second, ok := strings.Cut(word, "-")
			a, err := strconv.Atoi(first)
			b, wrong := strconv.Atoi(second)
			switch {
			case !ok || err != nil || wrong != nil || a < 0 || b < 0 || a == b:
				return nil, fmt.Errorf("--rounds: %.32q is not a pair of ranks such as 0-1", word)
			case a >= ranks || b >= ranks:
				return nil, fmt.Errorf("--rounds: %.32q: there are ranks 0 to %d only", word, ranks-1)
			case busy[a] || busy[b]:
				return nil, fmt.Errorf("--rounds: round %d has a rank of %.32q twice", i, word)
			}
			busy[a], busy[b] = true, true
			round = append(round, pair{a, b})
		}
		if len(round) == 0 {
			return nil, fmt.Errorf("--rounds: round %d has no pair", i)
		}
		rounds = append(rounds, round)
	}
	return rounds, nil
}
