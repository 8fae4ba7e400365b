// Package save keeps all virtual machines of a cluster while their programs run, as one, and brings them back: all
// of them, or none. Its Sequence records what it is about to do, does it, and records what came of it, so that it
// goes on after its server was killed anywhere.
//
// Until the first machine is ended, whatever fails lets all go on. Until the first goes on again, whatever fails leaves
// all saved, with states that are whole. From then on the states are void: none is run twice, and a machine that is
// lost is lost.
package save
