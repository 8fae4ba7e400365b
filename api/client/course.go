package client

import (
	"context"
	"net/http"

	"github.com/muster-hpc/muster/wire"
)

// Book books single machines for a class.
func (k *Client) Book(ctx context.Context, r wire.BookRequest) (wire.Course, error) {
	var out wire.Course
	return out, k.post(ctx, path("courses"), r, &out)
}

// Courses lists courses.
func (k *Client) Courses(ctx context.Context) (wire.CourseList, error) {
	list, err := pages(ctx, k, path("courses"), nil, 0, func(l wire.CourseList) ([]wire.Course, wire.More) { return l.Courses, l.More })
	return wire.CourseList{Courses: list}, err
}

// Course shows one.
func (k *Client) Course(ctx context.Context, ref string) (wire.Course, error) {
	var out wire.Course
	return out, k.get(ctx, path("courses", ref), nil, &out)
}

// ChangeCourse skips a date, makes a seat anew, or makes another code.
func (k *Client) ChangeCourse(ctx context.Context, ref string, r wire.CourseChange) (wire.Course, error) {
	var out wire.Course
	return out, k.post(ctx, path("courses", ref, "change"), r, &out)
}

// CancelCourse gives all of a course back.
func (k *Client) CancelCourse(ctx context.Context, ref string) error {
	return k.do(ctx, call{method: http.MethodDelete, path: path("courses", ref), out: &struct{}{}})
}

// ClaimSeat claims a seat of the next date.
func (k *Client) ClaimSeat(ctx context.Context, ref string, r wire.ClaimRequest) (wire.Claimed, error) {
	var out wire.Claimed
	return out, k.post(ctx, path("courses", ref, "claim"), r, &out)
}

// ReleaseSeat gives one's seat back.
func (k *Client) ReleaseSeat(ctx context.Context, ref string) (wire.Claimed, error) {
	var out wire.Claimed
	return out, k.post(ctx, path("courses", ref, "release"), struct{}{}, &out)
}
