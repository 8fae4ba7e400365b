package redfish

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/muster-hpc/muster"
)

const pathRoot = "/redfish/v1/"

// login opens a session, once. Where there are none, each request carries name
// and password.
func (d *driver) login(ctx context.Context) error {
	if d.token != "" || d.basic {
		return nil
	}
	if err := d.readRoot(ctx); err != nil {
		return err
	}
	path := d.root.Links.Sessions.Path
	if path == "" && d.root.SessionService.Path != "" {
		path = strings.TrimSuffix(d.root.SessionService.Path, "/") + "/Sessions"
	}
	if path == "" || d.quirk.basic {
		d.basic = true
		return nil
	}
	if !isPath(path) {
		return foreign()
	}
	password, err := d.t.Secret(ctx)
	if err != nil {
		return muster.Errorf(muster.EUnauth, "its controller's password cannot be fetched").Because(muster.ReasonControllerRefuses).Wrap(err)
	}
	a, err := d.c.do(ctx, http.MethodPost, path, nil, map[string]string{"UserName": d.t.Address.User, "Password": string(password)})
	if err != nil {
		return err
	}
	switch {
	case a.status == http.StatusMethodNotAllowed || a.status == http.StatusNotImplemented || a.status == http.StatusNotFound:
		d.basic = true
		return nil
	case a.status >= 300:
		return refused("open a session", a)
	}
	d.token = a.header.Get("X-Auth-Token")
	if d.token == "" {
		return muster.Errorf(muster.ECorrupt, "its Redfish controller opened a session without a token").Because(muster.ReasonControllerNonsense)
	}
	d.place = a.header.Get("Location")
	if u, err := url.Parse(d.place); err == nil && u.Host != "" {
		d.place = u.Path // some name themselves in full
	}
	return nil
}

func (d *driver) readRoot(ctx context.Context) error {
	if d.root != nil {
		return nil
	}
	a, err := d.c.do(ctx, http.MethodGet, pathRoot, nil, nil)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return refused("show its root", a)
	}
	var root rootObject
	if err := parse(a.body, &root); err != nil {
		return err
	}
	d.root = &root
	return nil
}

// ask makes a request in the session. One that the controller dropped is opened
// again, once.
func (d *driver) ask(ctx context.Context, method, path string, headers map[string]string, body any) (answer, error) {
	for again := false; ; again = true {
		if err := d.login(ctx); err != nil {
			return answer{}, err
		}
		all, err := d.credentials(ctx, headers)
		if err != nil {
			return answer{}, err
		}
		a, err := d.c.do(ctx, method, path, all, body)
		if err != nil || a.status != http.StatusUnauthorized || again || d.basic {
			return a, err
		}
		d.token, d.place = "", ""
	}
}

func (d *driver) credentials(ctx context.Context, headers map[string]string) (map[string]string, error) {
	all := map[string]string{}
	for k, v := range headers {
		all[k] = v
	}
	if d.token != "" {
		all["X-Auth-Token"] = d.token
		return all, nil
	}
	password, err := d.t.Secret(ctx)
	if err != nil {
		return nil, muster.Errorf(muster.EUnauth, "its controller's password cannot be fetched").Because(muster.ReasonControllerRefuses).Wrap(err)
	}
	all["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(d.t.Address.User+":"+string(password)))
	return all, nil
}

// Close ends the session.
func (d *driver) Close(ctx context.Context) error {
	defer d.c.http.CloseIdleConnections()
	token, place := d.token, d.place
	d.token, d.place = "", ""
	if token == "" || !isPath(place) {
		return nil
	}
	_, err := d.c.do(ctx, http.MethodDelete, place, map[string]string{"X-Auth-Token": token}, nil)
	return err
}

// refused makes an error of an answer that is no.
func refused(what string, a answer) error {
	ids, text := parseError(a.body)
	if text != "" {
		text = ": " + text
	}
	say := func(code muster.Code) *muster.Error {
		return muster.Errorf(code, "its Redfish controller refuses to %s (%d)%s", what, a.status, text).Because(muster.ReasonControllerRefuses)
	}
	busy := slices.ContainsFunc(ids, func(id string) bool {
		// Makers have their own names for "not while the firmware starts".
		for _, word := range []string{"DuringSystemPOST", "ResourceInUse", "ServiceTemporarilyUnavailable", "SessionLimitExceeded", "ServiceInUnknownState"} {
			if strings.Contains(id, word) {
				return true
			}
		}
		return false
	})
	switch {
	case busy:
		return say(muster.EUnavailable)
	case a.status == http.StatusUnauthorized:
		return say(muster.EUnauth).WithHint("correct the account or the password of the machine's power address")
	case a.status == http.StatusForbidden:
		return say(muster.EForbidden).WithHint("give the account the right to switch the machine and to set its boot override")
	case a.status == http.StatusNotFound:
		return say(muster.ENotFound).WithHint("see the path of the system in the machine's power address")
	case a.status == http.StatusPreconditionFailed, a.status == http.StatusPreconditionRequired:
		return say(muster.EConflict)
	case a.status == http.StatusConflict, a.status == http.StatusTooManyRequests, a.status >= 500:
		return say(muster.EUnavailable)
	}
	return say(muster.EInvalid)
}
