//go:build race

package main

func raceFlag() []string { return []string{"-race"} }
