package bmc

import (
	"encoding/json"
	"log"
	"net/http"
	"strings"
	"time"
)

// Paths of the tree.
const (
	pathRoot     = "/redfish/v1/"
	pathSessions = "/redfish/v1/SessionService/Sessions"
	pathSystems  = "/redfish/v1/Systems"
	pathSystem   = "/redfish/v1/Systems/1"
	pathOther    = "/redfish/v1/Systems/2"
	pathFuture   = "/redfish/v1/Systems/1/SD"
	pathReset    = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"
	pathChassis  = "/redfish/v1/Chassis"
	pathManagers = "/redfish/v1/Managers"

	maxBody = 64 << 10
)

// object is a JSON object as it goes out.
type object map[string]any

func link(path string) object { return object{"@odata.id": path} }

func (b *BMC) newServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /redfish", func(w http.ResponseWriter, _ *http.Request) { send(w, 200, object{"v1": pathRoot}) })
	mux.HandleFunc("GET /redfish/v1", b.root)
	mux.HandleFunc("GET /redfish/v1/{$}", b.root)
	mux.HandleFunc("POST "+pathSessions, b.login)
	mux.HandleFunc("GET /redfish/v1/SessionService", b.authorized(b.sessionService))
	mux.HandleFunc("GET "+pathSessions, b.authorized(b.listSessions))
	mux.HandleFunc("GET "+pathSessions+"/{id}", b.authorized(b.showSession))
	mux.HandleFunc("DELETE "+pathSessions+"/{id}", b.authorized(b.logout))
	mux.HandleFunc("GET "+pathSystems, b.authorized(b.systems))
	mux.HandleFunc("GET "+pathSystem, b.authorized(b.system))
	mux.HandleFunc("PATCH "+pathSystem, b.authorized(b.change))
	mux.HandleFunc("GET "+pathOther, b.authorized(b.other))
	mux.HandleFunc("GET "+pathFuture, b.authorized(b.future))
	mux.HandleFunc("PATCH "+pathFuture, b.authorized(b.changeFuture))
	mux.HandleFunc("POST "+pathReset, b.authorized(b.reset))
	mux.HandleFunc("GET "+pathChassis, b.authorized(collection("Chassis", pathChassis, pathChassis+"/1")))
	mux.HandleFunc("GET "+pathChassis+"/1", b.authorized(b.chassis))
	mux.HandleFunc("GET "+pathManagers, b.authorized(collection("Manager", pathManagers, pathManagers+"/1")))
	mux.HandleFunc("GET "+pathManagers+"/1", b.authorized(b.manager))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, 404, "Base.1.0.ResourceMissingAtURI", "there is nothing here")
	})
	return &http.Server{
		Handler:           b.faulty(mux),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(discard{}, "", 0),
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// faulty delays or withholds answers. A deaf controller keeps the connection
// and says nothing on it.
func (b *BMC) faulty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if !b.delay(r.Context()) {
			select {
			case <-r.Context().Done():
			case <-b.ctx.Done():
			}
			panic(http.ErrAbortHandler)
		}
		if b.Broken().Garbles && r.URL.Path != pathRoot && r.URL.Path != pathSessions {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"PowerState": "O`))
			return
		}
		w.Header().Set("OData-Version", "4.0")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func (b *BMC) root(w http.ResponseWriter, _ *http.Request) {
	o := object{
		"@odata.id": pathRoot, "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
		"Id": "RootService", "Name": "Root service", "RedfishVersion": "1.11.0",
		"Systems": link(pathSystems), "Chassis": link(pathChassis), "Managers": link(pathManagers),
	}
	if !b.cfg.Model.NoSessions {
		o["SessionService"] = link("/redfish/v1/SessionService")
		o["Links"] = object{"Sessions": link(pathSessions)}
	}
	send(w, 200, o)
}

func collection(kind, path string, members ...string) http.HandlerFunc {
	links := make([]object, 0, len(members))
	for _, m := range members {
		links = append(links, link(m))
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		send(w, 200, object{
			"@odata.id": path, "@odata.type": "#" + kind + "Collection." + kind + "Collection",
			"Name": kind + " collection", "Members": links, "Members@odata.count": len(links),
		})
	}
}

func (b *BMC) chassis(w http.ResponseWriter, _ *http.Request) {
	send(w, 200, object{
		"@odata.id": pathChassis + "/1", "@odata.type": "#Chassis.v1_14_0.Chassis",
		"Id": "1", "Name": "Chassis", "ChassisType": "RackMount", "SerialNumber": b.cfg.Serial,
		"Links": object{"ComputerSystems": []object{link(pathSystem)}, "ManagedBy": []object{link(pathManagers + "/1")}},
	})
}

func (b *BMC) manager(w http.ResponseWriter, _ *http.Request) {
	send(w, 200, object{
		"@odata.id": pathManagers + "/1", "@odata.type": "#Manager.v1_10_0.Manager",
		"Id": "1", "Name": "Manager", "ManagerType": "BMC", "FirmwareVersion": "1.0", "PowerState": "On",
		"Links": object{"ManagerForServers": []object{link(pathSystem)}},
	})
}

func send(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// refuse sends Redfish's form of an error.
func refuse(w http.ResponseWriter, status int, id, text string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="Redfish"`)
	}
	send(w, status, object{"error": object{
		"code": "Base.1.0.GeneralError", "message": text,
		"@Message.ExtendedInfo": []object{{"MessageId": id, "Message": text, "Severity": "Warning"}},
	}})
}

// bodyOf reads a request's JSON.
func bodyOf(w http.ResponseWriter, r *http.Request, v any) bool {
	if kind := r.Header.Get("Content-Type"); kind != "" && !strings.HasPrefix(kind, "application/json") {
		refuse(w, 415, "Base.1.0.GeneralError", "the body must be application/json")
		return false
	}
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		refuse(w, 400, "Base.1.0.MalformedJSON", "the body is not valid JSON")
		return false
	}
	return true
}
