package api

import "net/http"

// oneFormWriter gives the framework's own complaints the status and the type
// that all errors of this API have; oneForm gives them the body.
type oneFormWriter struct{ http.ResponseWriter }

// WriteHeader corrects what only the framework writes.
func (w oneFormWriter) WriteHeader(status int) {
	if w.Header().Get("Content-Type") == "application/problem+json" {
		w.Header().Set("Content-Type", "application/json")
		if status == http.StatusUnprocessableEntity || status == http.StatusRequestEntityTooLarge || status == http.StatusUnsupportedMediaType {
			status = http.StatusBadRequest
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController find the connection.
func (w oneFormWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
