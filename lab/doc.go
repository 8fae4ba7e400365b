// Package lab is a rack of virtual machines on one computer, on which an
// administrator rehearses and tests run: machines that sleep and are woken, boot by
// network, have management controllers and TPMs, and hang on a switch. Muster's
// server meets them as it meets real ones.
//
// A lab is a directory, two network namespaces and processes. Everything that
// starts, finds or ends something may be repeated, and may be killed at any point:
// the next Up or Down comes to the same end.
package lab
