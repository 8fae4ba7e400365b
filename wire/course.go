package wire

import (
	"time"

	"github.com/muster-hpc/muster"
)

// BookRequest books single machines for a class: the element <course> in XML.
type BookRequest struct {
	Name    string             `json:"name" doc:"Name of the course, at most 16 characters"`
	Project string             `json:"project,omitempty" doc:"Project whose people may claim seats; default: your only project"`
	Seats   int                `json:"seats" doc:"How many machines, one for each participant; 1 to 500"`
	Image   string             `json:"image,omitempty" doc:"Image of the seats; default raw"`
	Machine MachineConstraints `json:"machine,omitzero" doc:"What each machine must be"`
	Days    []string           `json:"days" doc:"Days of the week: mon, tue, wed, thu, fri, sat, sun"`
	Begin   string             `json:"begin" doc:"Time of day, such as 10:00"`
	End     string             `json:"end" doc:"Time of day, such as 12:00"`
	Zone    string             `json:"zone" doc:"Time zone, such as Europe/Berlin"`
	First   string             `json:"first" doc:"First date, such as 2026-10-06"`
	Last    string             `json:"last" doc:"Last date"`
	Except  []string           `json:"except,omitempty" doc:"Dates that are left out: holidays"`
	Claim   string             `json:"claim,omitempty" doc:"Within what time after the beginning a seat must be claimed and logged in to, or it goes back to the pool; default 30m"`
}

// Course is a course with its dates.
type Course struct {
	ID      string       `json:"id"`
	Name    string       `json:"name"`
	Project string       `json:"project"`
	Teacher string       `json:"teacher"`
	Seats   int          `json:"seats"`
	Image   string       `json:"image"`
	Dates   []CourseDate `json:"dates"`
	// Code is what seats are claimed with; only in the reply to who made it.
	Code string `json:"code,omitempty"`
}

// CourseDate is one date of a course.
type CourseDate struct {
	Start time.Time              `json:"start"`
	End   time.Time              `json:"end"`
	State muster.OccurrenceState `json:"state"`
	Why   string                 `json:"why,omitempty"`
	Seats []CourseSeat           `json:"seats,omitempty"` // only in show
}

// CourseSeat is one machine of one date.
type CourseSeat struct {
	Number  int              `json:"number"`
	Cluster muster.ClusterID `json:"cluster"`
	Name    string           `json:"name"`           // of the cluster
	User    string           `json:"user,omitempty"` // who claimed it, where the asker may know
	State   string           `json:"state"`          // reserved, ready, released, ...
	Entered bool             `json:"entered,omitempty"`
}

// CourseList is a page of courses.
type CourseList struct {
	Courses []Course `json:"courses"`
	More
}

// ClaimRequest claims a seat.
type ClaimRequest struct {
	Code string `json:"code" doc:"The code of the course"`
}

// Claimed is the seat that somebody has.
type Claimed struct {
	Course  string     `json:"course"`
	Start   time.Time  `json:"start"`
	End     time.Time  `json:"end"`
	Seat    CourseSeat `json:"seat"`
	Already bool       `json:"already,omitempty"` // it was theirs before
}

// CourseChange skips a date, resets a seat, or makes a new code.
type CourseChange struct {
	Skip    string `json:"skip,omitempty" doc:"A date to leave out, such as 2026-10-13"`
	Reset   int    `json:"reset,omitempty" doc:"The number of a seat to make anew for who has it"`
	NewCode bool   `json:"new_code,omitempty" doc:"Make another code; the one before is worth nothing then"`
}
