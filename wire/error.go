package wire

import (
	"encoding/json"
	"net/http"
)

// WriteError answers with an error in the one form that all servers have: the keys of a
// muster.Error, at the top. e is one, or has one embedded beside more keys (Refusal).
func WriteError(w http.ResponseWriter, status int, e any) {
	w.Header().Set("Content-Type", "application/json")
	if RetrySoon(status) {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(e)
}

// RetrySoon reports whether a request was not begun, so that it may be sent again as it is.
func RetrySoon(status int) bool { return status == http.StatusTooManyRequests }
