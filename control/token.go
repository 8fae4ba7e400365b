package control

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/duration"
	"github.com/muster-hpc/muster/pki"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

const (
	defaultTokenTime = 90 * 24 * time.Hour
	maxTokenTime     = 3 * 366 * 24 * time.Hour
)

// Tokens lists tokens: the actor's own, or anybody's for administrators.
func (s *Service) Tokens(ctx context.Context, who muster.Actor, q wire.TokenQuery) (wire.TokenList, error) {
	out, user := wire.TokenList{Tokens: []wire.Token{}}, q.User
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		if user == "" && !who.Admin {
			user = who.Name
		}
		if user != "" {
			if _, err := findUser(tx, user); err != nil {
				return err
			}
		}
		list, err := tx.Tokens(user)
		if err != nil {
			return err
		}
		// Few: a person has some. Their order is that of the store.
		list, out.More = wire.Cut(list, q.Page, func(t store.Token) string {
			return fmt.Sprintf("%s %019d %s", t.User, t.Created.UnixNano(), t.ID)
		})
		for _, t := range list {
			out.Tokens = append(out.Tokens, wire.Token{ID: t.ID, User: t.User, Note: t.Note, Created: t.Created, Expires: t.Expires, ReadOnly: t.ReadOnly})
		}
		return nil
	})
	return out, err
}

// CreateToken makes a token for the actor, or for anybody by administrators.
func (s *Service) CreateToken(ctx context.Context, who muster.Actor, r wire.TokenRequest) (wire.Token, error) {
	if r.User == "" {
		r.User = who.Name
	}
	if !who.Admin && r.User != who.Name {
		return wire.Token{}, muster.Errorf(muster.EForbidden, "you may make tokens for yourself only").Because(muster.ReasonYourselfOnly).WithHint("leave the user away")
	}
	if r.ReadOnly && !who.Admin {
		return wire.Token{}, muster.Errorf(muster.EForbidden, "only administrators make tokens that read everything").Because(muster.ReasonAdminOnly).WithHint("ask one, or make a token of your own without read_only")
	}
	if len(r.Note) > 200 {
		return wire.Token{}, muster.Errorf(muster.EInvalid, "the note is too long").Because(muster.ReasonTooLarge).WithHint("use at most 200 characters")
	}
	life, err := tokenTime(r.TTL)
	if err != nil {
		return wire.Token{}, err
	}
	if err := s.WritesAllowed(); err != nil && !who.Admin {
		return wire.Token{}, err
	}
	secret, hash := pki.NewToken()
	now := s.Clock.Now()
	t := store.Token{ID: "t-" + muster.RandomID(8), User: r.User, Hash: hash, Note: r.Note, Created: now, Expires: now.Add(life), ReadOnly: r.ReadOnly}
	err = s.Store.Update(ctx, who, func(tx *store.Tx) error {
		if _, err := findUser(tx, r.User); err != nil {
			return err
		}
		return tx.PutToken(t)
	})
	if err != nil {
		return wire.Token{}, err
	}
	return wire.Token{ID: t.ID, User: t.User, Note: t.Note, Created: t.Created, Expires: t.Expires, ReadOnly: t.ReadOnly, Secret: secret}, nil
}

// RevokeToken makes a token useless at once.
func (s *Service) RevokeToken(ctx context.Context, who muster.Actor, id string) error {
	return s.Store.Update(ctx, who, func(tx *store.Tx) error { return tx.DeleteToken(id) })
}

// tokenTime reads "30d", "12h"; empty is the default.
func tokenTime(s string) (time.Duration, error) {
	if s == "" {
		return defaultTokenTime, nil
	}
	bad := muster.Errorf(muster.EInvalid, "%.40q is not how long a token lives", s).Because(muster.ReasonBadValue).WithHint("write 12h, 30d or 2w; at most three years")
	d, err := duration.Parse(s)
	if err != nil || d <= 0 || d > maxTokenTime {
		return 0, bad
	}
	return d, nil
}
