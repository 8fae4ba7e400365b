package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/control/spec"
	"github.com/muster-hpc/muster/wire"
	"github.com/spf13/cobra"
)

// maxCode is more than any code has.
const maxCode = 256

func (a *app) book() *cobra.Command {
	var file, format string
	c := &cobra.Command{
		Use: "book", Short: "Book machines for a course", Args: cobra.ArbitraryArgs,
		Long: `Books single machines for a class, at the same hours each week: a promise for each seat of
each date. Seats are handed out by a code, one for each user of the project; who does not
claim a seat, or does not log in, within half an hour loses it. A date that cannot be kept
says why, and the others stand.`,
		Example: `  muster book -f course.yaml
  muster book show linux101
  echo CODE | muster book claim linux101
  muster book skip linux101 2026-10-13`,
		RunE: func(c *cobra.Command, args []string) error {
			if file == "" {
				return group(c, args)
			}
			if len(args) > 0 {
				return usage(c, "the course stands in the file, not beside it")
			}
			data, err := a.readUpTo(file, maxRequest, "a course")
			if err != nil {
				return err
			}
			r, err := spec.ReadCourse(data, spec.FormatOf("", first(format, file), data), time.Now())
			if err != nil {
				return err
			}
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.Book(c.Context(), r)
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) {
				writeCourse(w, out)
				fmt.Fprintf(w, "code:         %s\n  it is shown once; hand it out: echo CODE | muster book claim %s\n", clean(out.Code), clean(out.Name))
			})
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "course file; - is standard input")
	c.Flags().StringVar(&format, "format", "", "format of the file: yaml, json, xml (default: detected)")
	c.AddCommand(a.bookList(), a.bookShow(), a.bookSkip(), a.bookCancel(), a.bookClaim(), a.bookRelease(), a.bookReset(), a.bookCode())
	return c
}

func (a *app) bookList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List courses", Args: exactly(),
		Long: "Lists the courses of your projects.", Example: "  muster book list -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.Courses(c.Context())
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) {
				if len(out.Courses) == 0 {
					fmt.Fprintln(w, "No courses. Book one: muster book -f FILE")
					return
				}
				t := newTable("NAME", "PROJECT", "TEACHER", "SEATS", "NEXT", "DATES")
				for _, x := range out.Courses {
					next, left := "over", 0
					for _, d := range x.Dates {
						if d.State == muster.OccurrencePlanned {
							if left++; left == 1 {
								next = moment(d.Start)
							}
						}
					}
					t.row(x.Name, x.Project, x.Teacher, fmt.Sprint(x.Seats), next, fmt.Sprintf("%d of %d to come", left, len(x.Dates)))
				}
				t.write(w)
			})
		},
	}
}

func writeCourse(w io.Writer, c wire.Course) {
	fmt.Fprintf(w, "course %s  %s  %d seats of image %s in project %s, by %s\n", clean(c.Name), c.ID, c.Seats, clean(c.Image), clean(c.Project), clean(c.Teacher))
	shown := false
	for _, d := range c.Dates {
		fmt.Fprintf(w, "  %-10s  %s to %s\n", d.State, moment(d.Start), d.End.Local().Format("15:04"))
		if d.Why != "" {
			fmt.Fprintf(w, "              %s\n", clean(d.Why))
		}
		if d.State != muster.OccurrencePlanned || shown || len(d.Seats) == 0 {
			continue
		}
		shown = true // seats of the next date only: -o json has all
		for _, s := range d.Seats {
			user := s.User
			if user == "" {
				user = "free"
			} else if s.Entered {
				user += ", logged in"
			}
			fmt.Fprintf(w, "    seat %-3d  %-10s  %s  %s\n", s.Number, clean(s.State), clean(s.Name), clean(user))
		}
	}
}

// courseCommand is a command about one course, whose reply is the course.
func (a *app) courseCommand(use, short, long, example string, args []string, change func(args []string) (wire.CourseChange, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: exactly(args...), Long: long, Example: example, ValidArgsFunction: a.completeCourses,
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			var out wire.Course
			if change == nil {
				out, err = k.Course(c.Context(), args[0])
			} else {
				var r wire.CourseChange
				if r, err = change(args); err == nil {
					out, err = k.ChangeCourse(c.Context(), args[0], r)
				}
			}
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) {
				writeCourse(w, out)
				if out.Code != "" {
					fmt.Fprintf(w, "code:         %s\n", clean(out.Code))
				}
			})
		},
	}
}

func (a *app) bookShow() *cobra.Command {
	return a.courseCommand("show COURSE", "Show a course: dates, seats and who has them", "Shows the dates of a course and the seats of the next one. Who teaches it sees who has them.", "  muster book show linux101", []string{"COURSE"}, nil)
}

func (a *app) bookSkip() *cobra.Command {
	return a.courseCommand("skip COURSE DATE", "Leave a date of a course out", "Leaves a date of a course out: its machines are for others.", "  muster book skip linux101 2026-10-13", []string{"COURSE", "DATE"}, func(args []string) (wire.CourseChange, error) {
		return wire.CourseChange{Skip: args[1]}, nil
	})
}

func (a *app) bookReset() *cobra.Command {
	return a.courseCommand("reset COURSE SEAT", "Make a seat anew for who has it", "Deletes the machine of a seat and makes it anew, for the same user.", "  muster book reset linux101 7", []string{"COURSE", "SEAT"}, func(args []string) (wire.CourseChange, error) {
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 1 {
			return wire.CourseChange{}, muster.Errorf(muster.EInvalid, "%.20q is no number of a seat", args[1]).Because(muster.ReasonBadValue).WithHint("see 'muster book show %s'", args[0])
		}
		return wire.CourseChange{Reset: n}, nil
	})
}

func (a *app) bookCode() *cobra.Command {
	return a.courseCommand("code COURSE", "Make another code for a course", "Makes another code, which is shown once. The one before is worth nothing then; seats that were claimed stay.", "  muster book code linux101", []string{"COURSE"}, func([]string) (wire.CourseChange, error) {
		return wire.CourseChange{NewCode: true}, nil
	})
}

func (a *app) bookCancel() *cobra.Command {
	return &cobra.Command{
		Use: "cancel COURSE", Short: "Give all of a course back", Args: exactly("COURSE"), ValidArgsFunction: a.completeCourses,
		Long: "Cancels a course: all its machines are given back, those in use too.", Example: "  muster book cancel linux101",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			if err := k.CancelCourse(c.Context(), args[0]); err != nil {
				return err
			}
			return a.print(map[string]string{"name": args[0], "status": "cancelled"}, func(w io.Writer) { fmt.Fprintf(w, "course %s is cancelled\n", clean(args[0])) })
		},
	}
}

func (a *app) bookClaim() *cobra.Command {
	return &cobra.Command{
		Use: "claim COURSE", Short: "Claim a seat of a course with its code", Args: exactly("COURSE"), ValidArgsFunction: a.completeCourses,
		Long: "Claims a seat of the date that is under way or comes next. The code is read from standard input, so that it is not among the arguments.", Example: "  echo CODE | muster book claim linux101",
		RunE: func(c *cobra.Command, args []string) error {
			if a.env.terminal(a.env.In) {
				fmt.Fprint(a.env.Err, "code of the course: ")
			}
			data, err := a.readUpTo("-", maxCode, "a code")
			if err != nil {
				return err
			}
			line, _, _ := strings.Cut(string(data), "\n")
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.ClaimSeat(c.Context(), args[0], wire.ClaimRequest{Code: strings.TrimSpace(line)})
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) {
				fmt.Fprintf(w, "seat %d of %s is yours, from %s to %s\n  enter it:   muster ssh %s\n", out.Seat.Number, clean(out.Course), moment(out.Start), out.End.Local().Format("15:04"), clean(out.Seat.Name))
			})
		},
	}
}

func (a *app) bookRelease() *cobra.Command {
	return &cobra.Command{
		Use: "release COURSE", Short: "Give your seat of a course back", Args: exactly("COURSE"), ValidArgsFunction: a.completeCourses,
		Long: "Gives your seat back: somebody else can claim it.", Example: "  muster book release linux101",
		RunE: func(c *cobra.Command, args []string) error {
			k, err := a.connect()
			if err != nil {
				return err
			}
			out, err := k.ReleaseSeat(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(out, func(w io.Writer) { fmt.Fprintf(w, "seat %d of %s is given back\n", out.Seat.Number, clean(out.Course)) })
		},
	}
}
