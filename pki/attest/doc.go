// Package attest has a machine show that it holds a certain TPM 2.0, without a
// secret that could be copied. Both sides are here, so that they agree.
//
// When a machine is approved, the public part of its TPM's endorsement key is
// written down: the enrolment. The private part never leaves the TPM, and is not
// erased with the machine's disks. Later the server makes a credential that only
// this key can open ([New]); the machine has its TPM open it
// (TPM2_ActivateCredential) and answers with a code made from what was inside,
// from the number of its boot and from the key of the program that asks
// ([Challenge.Verify]). An answer is therefore of no use to another program, and a
// challenge is good for one answer.
//
// What it does not show is which software runs: a machine that was led to start a
// foreign program answers as well. The endorsement key is believed because
// somebody approved the machine; the makers' certificates are not looked at.
package attest
