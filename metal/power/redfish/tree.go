package redfish

import (
	"encoding/json"
	"strings"

	"github.com/muster-hpc/muster"
	"github.com/muster-hpc/muster/internal/cleantext"
)

// maxBody bounds an answer, in bytes.
const maxBody = 1 << 20

// The parts of Redfish's tree that are read. Nothing else is looked at: a
// member with a wrong type elsewhere, of which many controllers have some, does
// not hide the state of the power.

type rootObject struct {
	Systems        link
	SessionService link
	Links          struct{ Sessions link }
}

type link struct {
	Path string `json:"@odata.id"`
}

type collectionObject struct{ Members []link }

type systemObject struct {
	PowerState string
	Boot       struct {
		BootSourceOverrideEnabled string
		BootSourceOverrideTarget  string
		BootSourceOverrideMode    string
		Targets                   []string `json:"BootSourceOverrideTarget@Redfish.AllowableValues"`
	}
	Actions struct {
		Reset struct {
			Target string   `json:"target"`
			Types  []string `json:"ResetType@Redfish.AllowableValues"`
		} `json:"#ComputerSystem.Reset"`
	}
	Settings struct{ SettingsObject link } `json:"@Redfish.Settings"`
	Tag      string                        `json:"@odata.etag"`
}

// parse reads an answer's body into v.
func parse(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return muster.Errorf(muster.ECorrupt, "its Redfish controller sent invalid JSON").Because(muster.ReasonControllerNonsense)
	}
	return nil
}

// parseSystem reads a system. A system without a power state is none.
func parseSystem(body []byte) (systemObject, error) {
	var s systemObject
	if err := parse(body, &s); err != nil {
		return systemObject{}, err
	}
	if s.Actions.Reset.Target != "" && !isPath(s.Actions.Reset.Target) {
		return systemObject{}, foreign()
	}
	if p := s.Settings.SettingsObject.Path; p != "" && !isPath(p) {
		return systemObject{}, foreign()
	}
	return s, nil
}

// isPath tells a path of the same controller from an address elsewhere, where
// the session's token must not go.
func isPath(p string) bool {
	return strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "//") && !strings.ContainsAny(p, "\\?# \r\n") && len(p) < 1000
}

func foreign() error {
	return muster.Errorf(muster.ECorrupt, "its Redfish controller points to an address that is not its own").Because(muster.ReasonControllerNonsense)
}

// parseError finds the words of a refusal, fit for one line.
func parseError(body []byte) (ids []string, text string) {
	var e struct {
		Error struct {
			Message  string `json:"message"`
			Extended []struct {
				ID   string `json:"MessageId"`
				Text string `json:"Message"`
			} `json:"@Message.ExtendedInfo"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil {
		return nil, ""
	}
	text = e.Error.Message
	for _, x := range e.Error.Extended {
		ids = append(ids, x.ID)
		if x.Text != "" {
			text = x.Text
		} else if x.ID != "" {
			text = x.ID
		}
	}
	return ids, line(text)
}

// line makes a controller's words one short line without control characters.
func line(s string) string { return strings.TrimSpace(cleantext.Cut(cleantext.Line(s), 200)) }
