package client

import (
	"context"
	"maps"
	"net/url"
	"strconv"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// pages reads a list page by page, and each page into a reply of its own, of which of
// tells the things and the cursor. It stops at most things, or at the end if most is 0.
func pages[L, T any](ctx context.Context, k *Client, path string, query url.Values, most int, of func(L) ([]T, wire.More)) ([]T, error) {
	list := []T{}
	query = maps.Clone(query)
	if query == nil {
		query = url.Values{}
	}
	for {
		if most > 0 {
			query.Set("limit", strconv.Itoa(min(most-len(list), wire.PageMost)))
		}
		var reply L
		if err := k.get(ctx, path, query, &reply); err != nil {
			return nil, err
		}
		part, more := of(reply)
		list = append(list, part...)
		switch {
		case more.Next == "" || most > 0 && len(list) >= most:
			return list, nil
		case more.Next == query.Get("after"):
			return nil, muster.Errorf(muster.EUnavailable, "the list of %s has no end", k.address).Because(muster.ReasonBrokenOff).
				WithHint("compare 'muster version' with 'muster server'")
		}
		query.Set("after", more.Next)
	}
}
