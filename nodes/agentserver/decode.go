package agentserver

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
	"github.com/muster-hpc/muster/wire"
)

// Limits of what one message may hold.
const (
	maxJoinBytes   = 64 << 10
	maxReportBytes = 2 << 20
	maxStages      = 64
	maxChecks      = 64
	maxLines       = 2000
	maxLine        = 4 << 10
	maxText        = 1 << 10
	maxNodes       = 20000
	maxName        = 128
)

// decode reads one JSON value of at most limit bytes. Fields that it does not
// know are ignored: the agent may be one version newer.
func decode(r io.Reader, limit int64, into any) error {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return muster.Errorf(muster.EInvalid, "the message could not be read to its end").Because(muster.ReasonBrokenOff)
	}
	if int64(len(b)) > limit {
		return muster.Errorf(muster.EInvalid, "the message is longer than %d bytes", limit).Because(muster.ReasonTooLarge)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return muster.Errorf(muster.EInvalid, "the message is not JSON of the expected form").Because(muster.ReasonBadSyntax)
	}
	return nil
}

// DecodeJoin reads a join request. The error is EInvalid and never quotes the
// message, which holds a secret.
func DecodeJoin(r io.Reader) (wire.JoinRequest, error) {
	var q wire.JoinRequest
	if err := decode(r, maxJoinBytes, &q); err != nil {
		return wire.JoinRequest{}, err
	}
	if q.Protocol < 1 || len(q.Machine) == 0 || len(q.Machine) > maxName || len(q.Token) > maxName || len(q.Version) > maxName || q.Attempt < 1 {
		return wire.JoinRequest{}, muster.Errorf(muster.EInvalid, "the join request is not complete").Because(muster.ReasonRequired)
	}
	return q, nil
}

// DecodeReport reads a report and cuts it to what the server keeps. The error
// is EInvalid.
func DecodeReport(r io.Reader) (wire.Report, error) {
	var q wire.Report
	if err := decode(r, maxReportBytes, &q); err != nil {
		return wire.Report{}, err
	}
	switch q.State {
	case "configuring", "checking", "ready", "failed":
	default:
		return wire.Report{}, muster.Errorf(muster.EInvalid, "the report has an unknown state").Because(muster.ReasonBadValue)
	}
	if q.Attempt < 1 || len(q.BootID) > maxName {
		return wire.Report{}, muster.Errorf(muster.EInvalid, "the report does not say which attempt it is about").Because(muster.ReasonRequired)
	}
	q.Stages = q.Stages[:min(len(q.Stages), maxStages)]
	for i := range q.Stages {
		q.Stages[i].Name = text(q.Stages[i].Name, maxName)
	}
	q.Checks = q.Checks[:min(len(q.Checks), maxChecks)]
	for i := range q.Checks {
		q.Checks[i].Name = text(q.Checks[i].Name, maxName)
		q.Checks[i].Text = text(q.Checks[i].Text, maxText)
	}
	if n := len(q.Journal) - maxLines; n > 0 {
		q.Journal = q.Journal[n:]
		q.Dropped += int64(n)
	}
	for i := range q.Journal {
		q.Journal[i].Unit = text(q.Journal[i].Unit, maxName)
		q.Journal[i].Message = text(q.Journal[i].Message, maxLine)
	}
	if q.Topology != nil && q.Topology.Check() != nil {
		q.Topology = nil
	}
	q.Seconds = usageSeconds(q.Seconds)
	q.Goodbye = text(q.Goodbye, maxName)
	q.Reached = q.Reached[:min(len(q.Reached), mostReach)]
	for i := range q.Reached {
		q.Reached[i].Name = text(q.Reached[i].Name, maxName)
	}
	if q.Scheduler != nil && len(q.Scheduler.Nodes) > maxNodes {
		return wire.Report{}, muster.Errorf(muster.EInvalid, "the scheduler shows more nodes than any cluster has").Because(muster.ReasonTooMany)
	}
	if q.Scheduler != nil {
		if len(q.Scheduler.Reasons) > maxNodes {
			return wire.Report{}, muster.Errorf(muster.EInvalid, "the scheduler reports too many nodes").Because(muster.ReasonTooMany)
		}
		for name, why := range q.Scheduler.Reasons {
			q.Scheduler.Reasons[name] = text(why, maxLine)
		}
	}
	return q, nil
}

// mostCores is more than any machine has, and mostAgo longer than anything is of use.
const (
	mostCores = 1 << 16
	mostAgo   = 3600
)

// usageSeconds is what can be believed of them: all, or nothing.
func usageSeconds(u *wire.UsageSeconds) *wire.UsageSeconds {
	if u == nil || !(u.Ago >= 0 && u.Ago <= mostAgo) || len(u.User) == 0 || len(u.User) > wire.MaxUsageSeconds ||
		len(u.System) != len(u.User) || len(u.Wait) != len(u.User) {
		return nil
	}
	for _, list := range [][]float64{u.User, u.System, u.Wait} {
		for _, v := range list {
			if !(v >= 0 && v <= mostCores) {
				return nil
			}
		}
	}
	return u
}

// text cuts a text from outside to a length, and takes out what would confuse
// a terminal.
func text(s string, most int) string {
	return cleantext.Cut(cleantext.Line(cleantext.Cut(s, most)), most)
}

// status is the HTTP status of a refused message.
func status(err error) int {
	if muster.ReasonOf(err) == muster.ReasonTooLarge {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// asError is err as what is sent to an agent.
func asError(err error) *muster.Error {
	var e *muster.Error
	if errors.As(err, &e) {
		return e
	}
	return muster.Errorf(muster.EInternal, "the server failed")
}
