package redfish

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

// bootOnce sets the override for one start from the network and reads it back.
func (d *driver) bootOnce(ctx context.Context) error {
	s, tag, err := d.system(ctx)
	if err != nil {
		return err
	}
	target := "Pxe"
	if d.t.Address.Boot == muster.BootHTTP {
		target = "UefiHttp"
	}
	if allowed := s.Boot.Targets; len(allowed) > 0 && !slices.Contains(allowed, target) {
		return muster.Errorf(muster.EInvalid, "its Redfish controller cannot boot it by %s, only by %s", target, line(strings.Join(allowed, ", "))).
			WithHint("put the network first in the machine's own boot order, or change the way it boots in its power address")
	}
	path := d.path
	if d.quirk.settings {
		path, tag = s.Settings.SettingsObject.Path, ""
	}
	a, err := d.patch(ctx, path, tag, d.wanted(s, target))
	if err == nil && isFuture(a) && s.Settings.SettingsObject.Path != "" {
		path = s.Settings.SettingsObject.Path
		a, err = d.patch(ctx, path, "", d.wanted(s, target))
	}
	if err != nil {
		return err
	}
	if a.status >= 300 {
		return refused("set the boot override", a)
	}
	if d.quirk.blind {
		return nil
	}
	return d.readBack(ctx, path, target)
}

// wanted is the change: what differs, and what the quirk has it repeat.
func (d *driver) wanted(s systemObject, target string) any {
	boot := map[string]string{"BootSourceOverrideTarget": target}
	if d.quirk.all || s.Boot.BootSourceOverrideEnabled != "Once" {
		boot["BootSourceOverrideEnabled"] = "Once"
	}
	shown := s.Boot.BootSourceOverrideMode
	mode := shown // nobody said another one: the firmware keeps its own
	switch {
	case d.t.Address.BootMode == muster.BootModeUEFI || target == "UefiHttp":
		mode = "UEFI"
	case d.t.Address.BootMode == muster.BootModeBIOS:
		mode = "Legacy"
	}
	if mode != "" && !d.quirk.neverMode && (d.quirk.mode || (shown != "" && shown != mode)) {
		boot["BootSourceOverrideMode"] = mode
	}
	return map[string]any{"Boot": boot}
}

// patch changes a resource that has this entity tag. Controllers differ in what
// they want as If-Match: the tag as they show it, its strong form, or any.
func (d *driver) patch(ctx context.Context, path, tag string, body any) (answer, error) {
	if !isPath(path) {
		return answer{}, muster.Errorf(muster.EInvalid, "its Redfish controller shows no settings of the system").
			WithHint("leave the quirk out")
	}
	tries := []string{tag}
	if strong, ok := strings.CutPrefix(tag, "W/"); ok {
		tries = append(tries, strong)
	}
	tries = append(tries, "*")
	if tag == "" || d.quirk.noMatch {
		tries = []string{"", "*"}
	}
	var a answer
	for _, match := range tries {
		headers := map[string]string{}
		if match != "" {
			headers["If-Match"] = match
		}
		var err error
		a, err = d.ask(ctx, http.MethodPatch, path, headers, body)
		if err != nil || (a.status != http.StatusPreconditionFailed && a.status != http.StatusPreconditionRequired) {
			return a, err
		}
	}
	return a, nil
}

// isFuture means that the change belongs to the settings object.
func isFuture(a answer) bool {
	ids, _ := parseError(a.body)
	return a.status >= 400 && slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(id, "OperationSupportedInFutureStateURI") })
}

// readBack sees that the override is what was set.
func (d *driver) readBack(ctx context.Context, path, target string) error {
	a, err := d.ask(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return refused("show the boot override", a)
	}
	s, err := parseSystem(a.body)
	if err != nil {
		return err
	}
	if s.Boot.BootSourceOverrideEnabled != "Once" || s.Boot.BootSourceOverrideTarget != target {
		return muster.Errorf(muster.EConflict, "its Redfish controller accepted a network boot but did not set it").Because(muster.ReasonPowerUnconfirmed).
			WithHint("update the controller's firmware, or put the network first in the machine's own boot order and use the quirk blind-boot")
	}
	return nil
}

// tagOf is the entity tag of an answer: in its header, or in the object.
func tagOf(a answer, inside string) string {
	if t := a.header.Get("ETag"); t != "" {
		return t
	}
	if strings.ContainsAny(inside, "\r\n") || len(inside) > 200 {
		return ""
	}
	return inside
}
