package muster

import (
	"slices"
	"time"
)

// Notice is something that the people in a cluster should know.
type Notice struct {
	ID   int64      `json:"id"` // grows within the cluster; shown once
	At   time.Time  `json:"at"`
	Code NoticeCode `json:"code"`
	Text string     `json:"text"`
}

// maxNotices is how many notices a cluster keeps: the newest.
const maxNotices = 20

// AddNotice returns the list with one more notice, at most as many as are kept. The list
// given is not changed.
func AddNotice(list []Notice, at time.Time, code NoticeCode, text string) []Notice {
	n := Notice{ID: 1, At: at, Code: code, Text: text}
	if len(list) > 0 {
		n.ID = list[len(list)-1].ID + 1
	}
	out := append(slices.Clone(list), n)
	return out[max(0, len(out)-maxNotices):]
}

// NoticeCode is what a notice is about.
type NoticeCode string

// What people at a prompt are told.
const (
	NoticeWalltime  NoticeCode = "walltime"  // it ends soon
	NoticeEnding    NoticeCode = "ending"    // it ends now
	NoticeExtended  NoticeCode = "extended"  // it ends later
	NoticeRestarted NoticeCode = "restarted" // the head was started again
	NoticeReplaced  NoticeCode = "replaced"  // another machine took a node's place
	NoticePowerCut  NoticeCode = "power-cut" // nodes were started again
	NoticePreempted NoticeCode = "preempted" // somebody else needs its machines
	NoticePause     NoticeCode = "pause"     // it is paused soon, or came back
	NoticeLifted    NoticeCode = "lifted"    // limits do not hold for it, or hold again
	NoticeOverdue   NoticeCode = "overdue"   // something waits for longer than it should
	NoticePromise   NoticeCode = "promise"   // its promised time changed, or is not kept
)
