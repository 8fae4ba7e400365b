package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/wire"
)

// Courses book single machines for classes.
type Courses interface {
	Book(ctx context.Context, who muster.Actor, r wire.BookRequest) (wire.Course, error)
	Courses(ctx context.Context, who muster.Actor, page wire.Page) (wire.CourseList, error)
	Course(ctx context.Context, who muster.Actor, ref string) (wire.Course, error)
	ChangeCourse(ctx context.Context, who muster.Actor, ref string, r wire.CourseChange) (wire.Course, error)
	CancelCourse(ctx context.Context, who muster.Actor, ref string) error
	ClaimSeat(ctx context.Context, who muster.Actor, ref string, r wire.ClaimRequest) (wire.Claimed, error)
	ReleaseSeat(ctx context.Context, who muster.Actor, ref string) (wire.Claimed, error)
}

// CourseRef names a course in a path.
type CourseRef struct {
	Course string `path:"course" maxLength:"64" doc:"ID or name"`
}

type bookInput struct{ Body wire.BookRequest }

type courseChangeInput struct {
	CourseRef
	Body wire.CourseChange
}

type claimInput struct {
	CourseRef
	Body wire.ClaimRequest
}

func (a *API) courseRoutes() {
	courses := []string{"courses"}
	route(a, huma.Operation{
		OperationID: "book-course", Method: http.MethodPost, Path: "/v1/courses", Tags: courses,
		Summary:     "Book single machines for a class",
		Description: "A promise for each seat of each date. A date that cannot be kept as a whole says why; the others stand. The reply has the code by which seats are claimed, once.",
	}, func(ctx context.Context, in *bookInput) (wire.Course, error) {
		return a.service.Book(ctx, who(ctx), in.Body)
	})
	route(a, huma.Operation{
		OperationID: "list-courses", Method: http.MethodGet, Path: "/v1/courses", Tags: courses, Summary: "List courses",
	}, func(ctx context.Context, in *pageInput) (wire.CourseList, error) {
		return a.service.Courses(ctx, who(ctx), in.page())
	})
	route(a, huma.Operation{
		OperationID: "show-course", Method: http.MethodGet, Path: "/v1/courses/{course}", Tags: courses,
		Summary: "Show a course with its dates and seats",
	}, func(ctx context.Context, in *CourseRef) (wire.Course, error) {
		return a.service.Course(ctx, who(ctx), in.Course)
	})
	route(a, huma.Operation{
		OperationID: "change-course", Method: http.MethodPost, Path: "/v1/courses/{course}/change", Tags: courses,
		Summary: "Skip a date, make a seat anew, or make another code",
	}, func(ctx context.Context, in *courseChangeInput) (wire.Course, error) {
		return a.service.ChangeCourse(ctx, who(ctx), in.Course, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "cancel-course", Method: http.MethodDelete, Path: "/v1/courses/{course}", Tags: courses,
		Summary: "Give all of a course back",
	}, func(ctx context.Context, in *CourseRef) (wire.Done, error) {
		return wire.Done{Status: "cancelled"}, a.service.CancelCourse(ctx, who(ctx), in.Course)
	})
	route(a, huma.Operation{
		OperationID: "claim-seat", Method: http.MethodPost, Path: "/v1/courses/{course}/claim", Tags: courses,
		Summary: "Claim a seat of the next date",
	}, func(ctx context.Context, in *claimInput) (wire.Claimed, error) {
		return a.service.ClaimSeat(ctx, who(ctx), in.Course, in.Body)
	})
	route(a, huma.Operation{
		OperationID: "release-seat", Method: http.MethodPost, Path: "/v1/courses/{course}/release", Tags: courses,
		Summary: "Give one's seat back",
	}, func(ctx context.Context, in *CourseRef) (wire.Claimed, error) {
		return a.service.ReleaseSeat(ctx, who(ctx), in.Course)
	})
}
