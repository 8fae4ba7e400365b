// Package pcinames knows what accelerators are called, by the numbers that they have on a
// PCI bus.
package pcinames

import (
	"cmp"
	_ "embed"
	"strings"
)

// scripts/accelerators writes the table.
//
//go:embed accelerators.txt
var accelerators string

// Accelerator is the maker and the product with a number of the form vendor:device, such
// as 10de:2330; "" where it is not known.
func Accelerator(number string) string {
	if len(number) != len("10de:2330") {
		return ""
	}
	_, rest, found := strings.Cut(accelerators, "\n"+strings.ToLower(number)+" ")
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(rest, "\n")
	return name
}

// OfModalias is the name of the device of a PCI modalias, pci:v000010DEd00002330sv...; its
// number where the name is not known; the modalias where it is none of a PCI device.
func OfModalias(modalias string) string {
	vendor, rest, ok := strings.Cut(strings.TrimPrefix(modalias, "pci:v0000"), "d0000")
	if !ok || len(vendor) != 4 || len(rest) < 4 {
		return modalias
	}
	number := strings.ToLower(vendor + ":" + rest[:4])
	return cmp.Or(Accelerator(number), number)
}
