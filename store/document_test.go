package store

import (
	"testing"

	"github.com/muster-hpc/muster/internal/document/documenttest"
)

// What is stored keeps its form, whatever its fields are called in Go.
func TestDocuments(t *testing.T) {
	documenttest.Check(t, clusterDoc)
	documenttest.Check(t, nodeDoc)
	documenttest.Check(t, machineDoc)
	documenttest.Check(t, userDoc)
	documenttest.Check(t, volumeDoc)
	documenttest.Check(t, cleanDoc)
	documenttest.Check(t, eventDoc)
	documenttest.Check(t, hplDoc)
	documenttest.Check(t, registrationDoc)
	documenttest.Check(t, maintenanceDoc)
	documenttest.Check(t, projectDoc)
	documenttest.Check(t, courseDoc)
	documenttest.Check(t, templateDoc)
	documenttest.Check(t, programDoc)
	documenttest.Check(t, programRunDoc)
	documenttest.Check(t, platformDoc)
	documenttest.Check(t, siteTreeDoc)
	documenttest.Check(t, experimentDoc)
	documenttest.Check(t, experimentLaunchDoc)
}
