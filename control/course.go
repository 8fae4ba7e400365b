package control

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/admit"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/store"
	"github.com/muster-hpc/muster/wire"
)

// usualClaim is within what time a seat must be claimed and logged in to.
const usualClaim = 30 * time.Minute

// Book books a course: a promise of one machine for each seat of each date. A date that
// cannot be kept as a whole says why and has no seats; the others stand. The reply has the
// code by which seats are handed out, once.
func (s *Service) Book(ctx context.Context, who muster.Actor, r wire.BookRequest) (wire.Course, error) {
	if err := s.WritesAllowed(); err != nil {
		return wire.Course{}, err
	}
	dates, problems := spec.Occurrences(r, s.Clock.Now())
	if e := spec.Error(problems); e != nil {
		return wire.Course{}, e
	}
	claim := usualClaim
	if r.Claim != "" {
		claim, _ = spec.ParseDuration(r.Claim)
	}
	code := rand.Text()[:16]
	c := muster.Course{
		ID: "b-" + muster.RandomID(8), Name: r.Name, Project: r.Project, Teacher: ownerOf(who, muster.Spec{Users: []string{"muster"}}), Seats: r.Seats,
		Claim: muster.Duration(claim), Code: hashCode(code), Created: s.Clock.Now().UTC(), Occurrences: dates,
	}
	seat := wire.Request{Name: r.Name + "-s", Project: r.Project, Nodes: 1, Head: string(muster.HeadShared), Image: r.Image, Machine: r.Machine, Validate: string(muster.ValidateOff)}
	if seat.Image == "" {
		seat.Image = "raw"
	}
	text, err := spec.Encode(seat, spec.JSON)
	if err != nil {
		return wire.Course{}, err
	}
	w, err := s.parseRequest(ctx, who, wire.CreateCall{Body: text, Format: "json"})
	if err != nil {
		return wire.Course{}, err
	}
	c.Spec, c.Project = w.spec, w.spec.Project
	if who.Name == "root" {
		c.Teacher = w.owner
	}
	if err := s.Store.Update(ctx, who, func(tx *store.Tx) error { return tx.PutCourse(c, "booked by "+who.Name) }); err != nil {
		return wire.Course{}, err
	}
	// Recorded first: what is booked of it is known, also after a crash; Tend gives back
	// seats of dates that were not finished.
	kept := 0
	for i := range c.Occurrences {
		if err := s.bookDate(ctx, who, &c, i, w); err != nil {
			return wire.Course{}, err
		}
		if c.Occurrences[i].State == muster.OccurrencePlanned {
			kept++
		}
	}
	if kept == 0 {
		_ = s.Store.Update(ctx, who, func(tx *store.Tx) error { return tx.DeleteCourse(c.ID, "no date of it can be kept") })
		return wire.Course{}, muster.Errorf(muster.ENoCapacity, "no date of the course can be kept: %s", c.Occurrences[0].Why).Because(muster.ReasonNotThen).WithHint("book fewer seats, or other hours")
	}
	out, err := s.Course(ctx, who, c.ID)
	out.Code = code
	return out, err
}

// bookDate makes the seats of one date, or none of them.
func (s *Service) bookDate(ctx context.Context, who muster.Actor, c *muster.Course, i int, w parsedRequest) error {
	o := &c.Occurrences[i]
	var refused error
	for n := 1; n <= c.Seats && refused == nil; n++ {
		id, err := s.bookSeat(ctx, who, *c, *o, n, w)
		if err != nil {
			refused = err
			break
		}
		o.Seats = append(o.Seats, muster.Seat{Number: n, Cluster: id})
	}
	if refused != nil {
		var e *muster.Error
		if !errors.As(refused, &e) {
			return refused
		}
		for _, seat := range o.Seats {
			if _, err := s.DeleteCluster(ctx, muster.System(), string(seat.Cluster)); err != nil {
				return err
			}
		}
		o.Seats, o.State, o.Why = nil, muster.OccurrenceFailed, fmt.Sprintf("%d of %d seats: %s", len(o.Seats), c.Seats, e.Error())
	}
	text := ""
	if o.State == muster.OccurrenceFailed {
		text = o.Start.Format(time.DateOnly) + " cannot be kept: " + o.Why
	}
	return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error { return tx.PutCourse(*c, text) })
}

// bookSeat makes the cluster of one seat.
func (s *Service) bookSeat(ctx context.Context, who muster.Actor, c muster.Course, o muster.Occurrence, n int, w parsedRequest) (muster.ClusterID, error) {
	w.spec.Name = fmt.Sprintf("%s-%s-s%02d", c.Name, o.Start.Format("0102"), n)
	w.spec.Start = muster.Start{After: o.Start, Before: o.Start}
	if !o.Start.After(s.Clock.Now()) { // a seat that is made anew
		w.spec.Start = muster.Start{}
	}
	w.spec.Walltime = muster.Duration(o.End.Sub(o.Start))
	w.owner, w.course = c.Teacher, c.ID
	created, err := s.commit(ctx, who, muster.NewClusterID(), w)
	if err == nil {
		s.Changed(created.ID)
	}
	return created.ID, err
}

func hashCode(code string) string {
	sum := sha256.Sum256([]byte("muster course\x00" + code))
	return hex.EncodeToString(sum[:])
}

// findCourse finds a course by its name or ID.
func findCourse(tx *store.Tx, ref string) (muster.Course, error) {
	list, err := tx.Courses()
	if err != nil {
		return muster.Course{}, err
	}
	for _, c := range list {
		if c.ID == ref || c.Name == ref || c.Project+"/"+c.Name == ref {
			return c, nil
		}
	}
	return muster.Course{}, muster.Errorf(muster.ENotFound, "there is no course %.64q", ref).Because(muster.ReasonNoSuchObject).WithHint("`muster book list` lists those of your projects")
}

// teaches refuses what only the teacher of a course may do.
func teaches(who muster.Actor, c muster.Course) error {
	if who.Admin || who.Name == c.Teacher {
		return nil
	}
	return muster.Errorf(muster.EForbidden, "course %s is %s's", c.Name, c.Teacher).Because(muster.ReasonForbidden).WithHint("ask %s", c.Teacher)
}

// Courses lists those that the actor may see.
func (s *Service) Courses(ctx context.Context, who muster.Actor, page wire.Page) (wire.CourseList, error) {
	out := wire.CourseList{Courses: []wire.Course{}}
	err := s.Store.View(ctx, who, func(tx *store.Tx) error {
		list, err := tx.Courses()
		if err != nil {
			return err
		}
		list, out.More = wire.Cut(list, page, func(c muster.Course) string { return c.Project + "/" + c.Name })
		for _, c := range list {
			view, err := s.viewCourse(tx, who, c, false)
			if err != nil {
				return err
			}
			out.Courses = append(out.Courses, view)
		}
		return nil
	})
	return out, err
}

// Course shows one with its seats. Who teaches it sees who has them.
func (s *Service) Course(ctx context.Context, who muster.Actor, ref string) (out wire.Course, err error) {
	err = s.Store.View(ctx, who, func(tx *store.Tx) error {
		c, err := findCourse(tx, ref)
		if err == nil {
			out, err = s.viewCourse(tx, who, c, true)
		}
		return err
	})
	return out, err
}

func (s *Service) viewCourse(tx *store.Tx, who muster.Actor, c muster.Course, seats bool) (wire.Course, error) {
	out := wire.Course{ID: c.ID, Name: c.Name, Project: c.Project, Teacher: c.Teacher, Seats: c.Seats, Image: c.Spec.Image, Dates: []wire.CourseDate{}}
	for _, o := range c.Occurrences {
		d := wire.CourseDate{Start: o.Start, End: o.End, State: o.State, Why: o.Why}
		for _, seat := range o.Seats {
			if !seats {
				break
			}
			view, err := s.viewSeat(tx, who, c, seat)
			if err != nil {
				return out, err
			}
			d.Seats = append(d.Seats, view)
		}
		out.Dates = append(out.Dates, d)
	}
	return out, nil
}

func (s *Service) viewSeat(tx *store.Tx, who muster.Actor, c muster.Course, seat muster.Seat) (wire.CourseSeat, error) {
	view := wire.CourseSeat{Number: seat.Number, Cluster: seat.Cluster, State: "released"}
	if teaches(who, c) == nil || seat.User == who.Name {
		view.User, view.Entered = seat.User, !seat.Entered.IsZero()
	}
	cluster, err := tx.AsSystem().Cluster(seat.Cluster)
	switch {
	case muster.CodeOf(err) == muster.ENotFound:
		return view, nil
	case err != nil:
		return view, err
	}
	view.Name = cluster.Name
	if !seat.Released {
		view.State = string(cluster.Phase)
	}
	return view, nil
}

// current is the date of a course that is under way or comes next; -1: none.
func current(c muster.Course, now time.Time) int {
	return slices.IndexFunc(c.Occurrences, func(o muster.Occurrence) bool { return o.State == muster.OccurrencePlanned && now.Before(o.End) })
}

// ClaimSeat gives the actor a seat of the date that is under way or comes next: one for each
// user of the project.
func (s *Service) ClaimSeat(ctx context.Context, who muster.Actor, ref string, r wire.ClaimRequest) (wire.Claimed, error) {
	var out wire.Claimed
	var changed muster.ClusterID
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		c, err := findCourse(tx, ref)
		if err != nil {
			return err
		}
		if subtle.ConstantTimeCompare([]byte(hashCode(r.Code)), []byte(c.Code)) != 1 {
			return muster.Errorf(muster.EForbidden, "that is not the code of course %s", c.Name).Because(muster.ReasonBadCode).WithHint("ask %s for it", c.Teacher)
		}
		sys, now := tx.AsSystem(), s.Clock.Now()
		if _, err := sys.User(who.Name); err != nil {
			return muster.Errorf(muster.EForbidden, "%s is no user who could have a seat", who.Name).Because(muster.ReasonForbidden).WithHint("claim it under the name by which you will log in")
		}
		i := current(c, now)
		if i < 0 {
			return muster.Errorf(muster.EConflict, "course %s is over", c.Name).Because(muster.ReasonWrongPhase).WithHint("see 'muster book show %s'", c.Name)
		}
		o := &c.Occurrences[i]
		out = wire.Claimed{Course: c.Name, Start: o.Start, End: o.End}
		seat := slices.IndexFunc(o.Seats, func(x muster.Seat) bool { return x.User == who.Name && !x.Released })
		if out.Already = seat >= 0; out.Already {
			out.Seat, err = s.viewSeat(tx, who, c, o.Seats[seat])
			return err
		}
		seat = slices.IndexFunc(o.Seats, func(x muster.Seat) bool { return x.User == "" && !x.Released })
		if seat < 0 {
			return muster.Errorf(muster.ENoCapacity, "no seat of course %s is left on %s", c.Name, o.Start.Format(time.DateOnly)).Because(muster.ReasonNoRoom).WithHint("ask %s: seats that are given back can be claimed", c.Teacher)
		}
		o.Seats[seat].User, o.Seats[seat].Claimed = who.Name, now
		cluster, err := sys.Cluster(o.Seats[seat].Cluster)
		if err != nil {
			return err
		}
		if !slices.Contains(cluster.Spec.Users, who.Name) {
			cluster.Spec.Users = append(slices.Clone(cluster.Spec.Users), who.Name)
			cluster.Generation++
			if err := sys.PutCluster(cluster, "seat claimed by "+who.Name); err != nil {
				return err
			}
		}
		changed = cluster.ID
		if err := sys.PutCourse(c, fmt.Sprintf("seat %d claimed by %s", o.Seats[seat].Number, who.Name)); err != nil {
			return err
		}
		out.Seat, err = s.viewSeat(tx, who, c, o.Seats[seat])
		return err
	})
	if err == nil && changed != "" {
		s.Changed(changed)
	}
	return out, err
}

// ReleaseSeat gives the actor's seat back: another may claim it.
func (s *Service) ReleaseSeat(ctx context.Context, who muster.Actor, ref string) (wire.Claimed, error) {
	var out wire.Claimed
	var changed muster.ClusterID
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		c, err := findCourse(tx, ref)
		if err != nil {
			return err
		}
		i := current(c, s.Clock.Now())
		seat := -1
		if i >= 0 {
			seat = slices.IndexFunc(c.Occurrences[i].Seats, func(x muster.Seat) bool { return x.User == who.Name && !x.Released })
		}
		if seat < 0 {
			return muster.Errorf(muster.EConflict, "you have no seat of course %s", c.Name).Because(muster.ReasonWrongPhase).WithHint("see 'muster book show %s'", c.Name)
		}
		o := &c.Occurrences[i]
		x := &o.Seats[seat]
		x.User, x.Claimed, x.Entered = "", time.Time{}, time.Time{}
		sys := tx.AsSystem()
		cluster, err := sys.Cluster(x.Cluster)
		if err != nil {
			return err
		}
		cluster.Spec.Users = slices.DeleteFunc(slices.Clone(cluster.Spec.Users), func(n string) bool { return n == who.Name && n != c.Teacher })
		cluster.Generation++
		changed = cluster.ID
		if err := sys.PutCluster(cluster, "seat released by "+who.Name); err != nil {
			return err
		}
		out = wire.Claimed{Course: c.Name, Start: o.Start, End: o.End}
		if err := sys.PutCourse(c, fmt.Sprintf("seat %d released by %s", x.Number, who.Name)); err != nil {
			return err
		}
		out.Seat, err = s.viewSeat(tx, who, c, *x)
		return err
	})
	if err == nil {
		s.Changed(changed)
	}
	return out, err
}

// ChangeCourse skips a date, makes a seat anew, or makes another code.
func (s *Service) ChangeCourse(ctx context.Context, who muster.Actor, ref string, r wire.CourseChange) (wire.Course, error) {
	var c muster.Course
	var over []muster.ClusterID
	code, seat, date := "", -1, -1
	err := s.Store.Update(ctx, who, func(tx *store.Tx) (err error) {
		over, seat, date = nil, -1, -1
		if c, err = findCourse(tx, ref); err != nil {
			return err
		}
		if err := teaches(who, c); err != nil {
			return err
		}
		text := ""
		switch {
		case r.Skip != "":
			date = slices.IndexFunc(c.Occurrences, func(o muster.Occurrence) bool {
				return o.State == muster.OccurrencePlanned && o.Start.Format(time.DateOnly) == r.Skip
			})
			if date < 0 {
				return muster.Errorf(muster.EInvalid, "%.20q is no date of course %s that is to come", r.Skip, c.Name).Because(muster.ReasonOutOfRange).WithHint("see 'muster book show %s'", c.Name)
			}
			o := &c.Occurrences[date]
			for _, x := range o.Seats {
				over = append(over, x.Cluster)
			}
			o.State, o.Seats = muster.OccurrenceSkipped, nil
			text = r.Skip + " is left out"
		case r.Reset > 0:
			if date = current(c, s.Clock.Now()); date >= 0 {
				seat = slices.IndexFunc(c.Occurrences[date].Seats, func(x muster.Seat) bool { return x.Number == r.Reset })
			}
			if seat < 0 {
				return muster.Errorf(muster.EInvalid, "course %s has no seat %d now", c.Name, r.Reset).Because(muster.ReasonOutOfRange).WithHint("see 'muster book show %s'", c.Name)
			}
			// Until the other machine is recorded the seat has none: it is not lost.
			if id := c.Occurrences[date].Seats[seat].Cluster; id != "" {
				over = append(over, id)
			}
			c.Occurrences[date].Seats[seat].Cluster = ""
			text = fmt.Sprintf("seat %d is made anew", r.Reset)
		case r.NewCode:
			code = rand.Text()[:16]
			c.Code = hashCode(code)
			text = "a new code"
		default:
			return muster.Errorf(muster.EInvalid, "nothing is to be changed").Because(muster.ReasonRequired).WithHint("skip a date, reset a seat or make a new code")
		}
		return tx.PutCourse(c, text+", by "+who.Name)
	})
	if err != nil {
		return wire.Course{}, err
	}
	for _, id := range over {
		if _, err := s.DeleteCluster(ctx, muster.System(), string(id)); err != nil && muster.CodeOf(err) != muster.ENotFound {
			return wire.Course{}, err
		}
	}
	if seat >= 0 {
		if err := s.resetSeat(ctx, who, c, date, seat); err != nil {
			return wire.Course{}, err
		}
	}
	out, err := s.Course(ctx, who, c.ID)
	out.Code = code
	return out, err
}

// resetSeat makes the cluster of a seat anew, for who has it.
func (s *Service) resetSeat(ctx context.Context, who muster.Actor, c muster.Course, date, seat int) error {
	o := c.Occurrences[date]
	x := o.Seats[seat]
	w := parsedRequest{spec: c.Spec}
	if x.User != "" {
		w.spec.Users = append(slices.Clone(w.spec.Users), x.User)
	}
	img, err := s.Config.Images.Resolve(c.Spec.Image)
	if err != nil {
		return err
	}
	w.image = img
	now := s.Clock.Now()
	if now.After(o.Start) {
		o.Start = now.Add(-time.Second) // what is left of its time
	}
	c2 := c
	c2.Name = c.Name
	var id muster.ClusterID
	for range 3 {
		id, err = s.bookSeat(ctx, who, c2, muster.Occurrence{Start: o.Start, End: o.End}, x.Number, w)
		switch muster.ReasonOf(err) {
		case muster.ReasonNameTaken: // the one before is just being given back
			c2.Name = c.Name + fmt.Sprint("-", now.Unix()%1000)
			continue
		case muster.ReasonNotThen: // it begins in a moment, and its machine is being cleaned: as soon as that is done
			o.Start = now.Add(-time.Second)
			continue
		}
		break
	}
	if err != nil {
		return err
	}
	return s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		is, err := tx.Course(c.ID)
		if err != nil {
			return err
		}
		y := &is.Occurrences[date].Seats[seat]
		y.Cluster, y.Released, y.Entered = id, false, time.Time{}
		return tx.PutCourse(is, "")
	})
}

// CancelCourse gives all of a course back.
func (s *Service) CancelCourse(ctx context.Context, who muster.Actor, ref string) error {
	var over []muster.ClusterID
	err := s.Store.Update(ctx, who, func(tx *store.Tx) error {
		c, err := findCourse(tx, ref)
		if err != nil {
			return err
		}
		if err := teaches(who, c); err != nil {
			return err
		}
		over = nil
		for _, o := range c.Occurrences {
			for _, x := range o.Seats {
				over = append(over, x.Cluster)
			}
		}
		return tx.DeleteCourse(c.ID, "cancelled by "+who.Name)
	})
	for _, id := range over {
		if err == nil {
			if _, err = s.DeleteCluster(ctx, muster.System(), string(id)); muster.CodeOf(err) == muster.ENotFound {
				err = nil
			}
		}
	}
	return err
}

// enteredSeat notes that somebody logs in to a seat.
func (s *Service) enteredSeat(ctx context.Context, who muster.Actor, c muster.Cluster) {
	if c.Course == "" {
		return
	}
	err := s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		course, err := tx.Course(c.Course)
		if err != nil {
			return err
		}
		for i := range course.Occurrences {
			for k := range course.Occurrences[i].Seats {
				if x := &course.Occurrences[i].Seats[k]; x.Cluster == c.ID && x.User == who.Name && x.Entered.IsZero() {
					x.Entered = s.Clock.Now()
					return tx.PutCourse(course, "")
				}
			}
		}
		return nil
	})
	if err != nil && muster.CodeOf(err) != muster.ENotFound {
		s.Log.Warn("recording a login to a seat failed", "cluster", c.ID, "error", err)
	}
}

// tendCourses gives seats back that nobody uses, and tells of dates that cannot be kept.
func (s *Service) tendCourses(ctx context.Context) (next time.Time, err error) {
	var courses []muster.Course
	err = s.Store.View(ctx, muster.System(), func(tx *store.Tx) (err error) {
		courses, err = tx.Courses()
		return err
	})
	var failed error
	for _, c := range courses {
		at, err := s.tendCourse(ctx, c.ID)
		failed = errors.Join(failed, err)
		if next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next, errors.Join(err, failed)
}

func (s *Service) tendCourse(ctx context.Context, id string) (next time.Time, err error) {
	now := s.Clock.Now()
	var over []muster.ClusterID
	err = s.Store.Update(ctx, muster.System(), func(tx *store.Tx) error {
		over, next = nil, time.Time{}
		c, err := tx.Course(id)
		if err != nil {
			return err
		}
		text, changed := "", false
		look := func(at time.Time) {
			if at.After(now) && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
		for i := range c.Occurrences {
			o := &c.Occurrences[i]
			if o.State != muster.OccurrencePlanned {
				continue
			}
			if !now.Before(o.End) {
				o.State, changed = muster.OccurrenceOver, true
				continue
			}
			look(o.End)
			for k := range o.Seats {
				x := &o.Seats[k]
				if x.Released || x.Cluster == "" {
					continue
				}
				limit := o.Start.Add(time.Duration(c.Claim))
				if x.Claimed.After(o.Start) {
					limit = x.Claimed.Add(time.Duration(c.Claim))
				}
				look(limit)
				if !now.Before(limit) && x.Entered.IsZero() {
					x.Released, changed = true, true
					over = append(over, x.Cluster)
					continue
				}
				cluster, err := tx.Cluster(x.Cluster)
				if err != nil && muster.CodeOf(err) != muster.ENotFound {
					return err
				}
				why := ""
				switch {
				case err != nil, cluster.Phase == muster.ClusterFailed, cluster.Phase == muster.ClusterDeleted:
					why = fmt.Sprintf("seat %d is lost", x.Number)
				case cluster.Promise != nil && !cluster.Promise.Start.Equal(o.Start) && cluster.Promise.Start.After(o.Start):
					why = fmt.Sprintf("seat %d starts at %s", x.Number, admit.Moment(cluster.Promise.Start))
				}
				if why != "" && o.Why == "" {
					o.Why, text, changed = why, o.Start.Format(time.DateOnly)+": "+why, true
				}
			}
		}
		if !changed {
			return nil
		}
		return tx.PutCourse(c, text)
	})
	for _, id := range over {
		if err == nil {
			if _, err = s.DeleteCluster(ctx, muster.System(), string(id)); muster.CodeOf(err) == muster.ENotFound {
				err = nil
			}
		}
	}
	return next, err
}
