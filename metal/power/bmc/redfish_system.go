package bmc

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

func (b *BMC) systems(w http.ResponseWriter, r *http.Request) {
	members := []string{pathSystem}
	if b.cfg.Model.Second {
		members = append(members, pathOther)
	}
	collection("ComputerSystem", pathSystems, members...)(w, r)
}

// system shows the machine.
func (b *BMC) system(w http.ResponseWriter, r *http.Request) {
	on, err := b.says(r.Context())
	if err != nil {
		refuse(w, 500, "Base.1.0.InternalError", "the chassis does not answer")
		return
	}
	reset := object{"target": pathReset}
	if !b.cfg.Model.HidesResets {
		reset["ResetType@Redfish.AllowableValues"] = b.cfg.Model.resets()
	}
	o := object{
		"@odata.id": pathSystem, "@odata.type": "#ComputerSystem.v1_13_0.ComputerSystem",
		"Id": "1", "Name": "System", "SystemType": "Physical", "SerialNumber": b.cfg.Serial,
		"PowerState": b.powerState(on),
		"Boot":       bootObject(b.override()),
		"Actions":    object{"#ComputerSystem.Reset": reset},
		"Links":      object{"Chassis": []object{link(pathChassis + "/1")}, "ManagedBy": []object{link(pathManagers + "/1")}},
	}
	if b.cfg.Model.Future {
		o["@Redfish.Settings"] = object{"@odata.type": "#Settings.v1_3_0.Settings", "SettingsObject": link(pathFuture)}
	}
	if b.cfg.Model.BadTypes {
		o["MemorySummary"] = object{"TotalSystemMemoryGiB": "64"}
		o["ProcessorSummary"] = []string{"two"}
		o["Status"] = nil
	}
	w.Header().Set("ETag", b.shownTag(on))
	send(w, 200, o)
}

func (b *BMC) shownTag(on bool) string {
	if b.cfg.Model.WeakTag {
		return "W/" + b.tag(on)
	}
	return b.tag(on)
}

func (b *BMC) powerState(on bool) string {
	b.mu.Lock()
	rising := b.clock.Now().Before(b.boot.rising)
	b.mu.Unlock()
	switch {
	case on && rising:
		return "PoweringOn"
	case on:
		return "On"
	}
	return "Off"
}

func bootObject(o override) object {
	boot := object{
		"BootSourceOverrideEnabled":                         "Disabled",
		"BootSourceOverrideTarget":                          "None",
		"BootSourceOverrideMode":                            "Legacy",
		"BootSourceOverrideEnabled@Redfish.AllowableValues": []string{"Disabled", "Once", "Continuous"},
		"BootSourceOverrideMode@Redfish.AllowableValues":    []string{"Legacy", "UEFI"},
		"BootSourceOverrideTarget@Redfish.AllowableValues":  []string{"None", "Pxe", "UefiHttp", "Hdd", "BiosSetup"},
	}
	if o.UEFI {
		boot["BootSourceOverrideMode"] = "UEFI"
	}
	if o.set {
		boot["BootSourceOverrideEnabled"] = "Continuous"
		if o.once {
			boot["BootSourceOverrideEnabled"] = "Once"
		}
		for name, d := range targets() {
			if d == o.Device {
				boot["BootSourceOverrideTarget"] = name
			}
		}
	}
	return boot
}

func targets() map[string]Device {
	return map[string]Device{"None": DeviceDefault, "Pxe": DeviceNetwork, "UefiHttp": DeviceHTTP, "Hdd": DeviceDisk, "BiosSetup": DeviceSetup}
}

// change is PATCH of the system.
func (b *BMC) change(w http.ResponseWriter, r *http.Request) {
	if b.cfg.Model.Future {
		refuse(w, 400, "Ami.1.0.OperationSupportedInFutureStateURI", "this is supported at "+pathFuture)
		return
	}
	b.patchBoot(w, r)
}

func (b *BMC) future(w http.ResponseWriter, _ *http.Request) {
	if !b.cfg.Model.Future {
		refuse(w, 404, "Base.1.0.ResourceMissingAtURI", "there is nothing here")
		return
	}
	w.Header().Set("ETag", b.shownTag(false))
	send(w, 200, object{"@odata.id": pathFuture, "Id": "SD", "Boot": bootObject(b.override())})
}

func (b *BMC) changeFuture(w http.ResponseWriter, r *http.Request) {
	if !b.cfg.Model.Future {
		refuse(w, 404, "Base.1.0.ResourceMissingAtURI", "there is nothing here")
		return
	}
	b.patchBoot(w, r)
}

// matches checks If-Match against what the client was shown.
func (b *BMC) matches(w http.ResponseWriter, r *http.Request) bool {
	match := r.Header.Get("If-Match")
	if match == "" && b.cfg.Model.NeedsMatch {
		refuse(w, 428, "Base.1.0.PreconditionRequired", "If-Match is missing")
		return false
	}
	if match == "" || match == "*" {
		return true
	}
	on, err := b.says(r.Context())
	if strings.HasSuffix(r.URL.Path, "/SD") {
		on = false
	}
	if err != nil || match != b.tag(on) {
		refuse(w, 412, "Base.1.0.PreconditionFailed", "it was changed meanwhile")
		return false
	}
	return true
}

func (b *BMC) patchBoot(w http.ResponseWriter, r *http.Request) {
	if !b.matches(w, r) {
		return
	}
	var q struct {
		Boot *struct {
			BootSourceOverrideEnabled, BootSourceOverrideTarget, BootSourceOverrideMode *string
		}
	}
	if !bodyOf(w, r, &q) {
		return
	}
	if q.Boot == nil {
		refuse(w, 400, "Base.1.0.PropertyUnknown", "only Boot can be changed")
		return
	}
	if b.Broken().Busy {
		refuse(w, 400, "iLO.2.37.UnableToModifyDuringSystemPOST", "not now")
		return
	}
	o := b.override()
	o.until = time.Time{}
	if m := q.Boot.BootSourceOverrideMode; m != nil {
		if b.cfg.Model.RefusesMode || (*m != "UEFI" && *m != "Legacy") {
			refuse(w, 400, "Base.1.0.PropertyValueNotInList", "the value of BootSourceOverrideMode is not in the list")
			return
		}
		o.UEFI = *m == "UEFI"
	}
	if t := q.Boot.BootSourceOverrideTarget; t != nil {
		device, ok := targets()[*t]
		if !ok {
			refuse(w, 400, "Base.1.0.PropertyValueNotInList", "the value of BootSourceOverrideTarget is not in the list")
			return
		}
		o.Device = device
	}
	if e := q.Boot.BootSourceOverrideEnabled; e != nil {
		switch *e {
		case "Disabled":
			o = override{Next: Next{UEFI: o.UEFI}}
		case "Once", "Continuous":
			o.set, o.once = true, *e == "Once"
		default:
			refuse(w, 400, "Base.1.0.PropertyValueNotInList", "the value of BootSourceOverrideEnabled is not in the list")
			return
		}
	}
	b.setBoot(o)
	w.WriteHeader(http.StatusNoContent)
}

// reset is the action that switches.
func (b *BMC) reset(w http.ResponseWriter, r *http.Request) {
	var q struct{ ResetType string }
	if !bodyOf(w, r, &q) {
		return
	}
	orders := map[string]action{
		"On": actOn, "ForceOn": actOn, "ForceOff": actOff, "ForceRestart": actReset, "GracefulRestart": actReset,
		"GracefulShutdown": actPress, "PushPowerButton": actPress, "PowerCycle": actCycle,
	}
	what, ok := orders[q.ResetType]
	if !ok || !slices.Contains(b.cfg.Model.resets(), q.ResetType) {
		refuse(w, 400, "Base.1.0.ActionParameterNotSupported", "ResetType is not one of those allowed")
		return
	}
	if b.Broken().Busy {
		refuse(w, 409, "Base.1.0.ResourceInUse", "not now")
		return
	}
	if err := b.perform(r.Context(), what); err != nil {
		b.log.Error("chassis command failed", "order", what, "error", err)
		refuse(w, 500, "Base.1.0.InternalError", "the chassis does not obey")
		return
	}
	if what == actOn {
		b.mu.Lock()
		b.boot.rising = b.clock.Now().Add(b.cfg.Model.Rises)
		b.mu.Unlock()
	}
	w.WriteHeader(http.StatusNoContent)
}

// other is a system that only stands there.
func (b *BMC) other(w http.ResponseWriter, _ *http.Request) {
	if !b.cfg.Model.Second {
		refuse(w, 404, "Base.1.0.ResourceMissingAtURI", "there is nothing here")
		return
	}
	send(w, 200, object{"@odata.id": pathOther, "Id": "2", "Name": "Other", "PowerState": "Off"})
}
