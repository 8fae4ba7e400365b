package wire

import (
	"net/netip"

	"github.com/muster-hpc/muster"
)

// BootProtocol is the version of the messages between the first program of a
// machine and the server. A server makes the first program itself, so that both
// are nearly always of one version; fields are only added, unknown ones ignored.
const BootProtocol = 1

// BootPath is where hellos go: POST /v1/boot. Images come from paths below
// BootFilePath.
const (
	BootPath     = "/v1/boot"
	BootFilePath = "/v1/boot/files/"
)

// BootProofHeader carries the proof that a check-in comes from the holder of its
// key: the Ed25519 signature of BootProofText, in base64.
const BootProofHeader = "Muster-Boot-Proof"

// BootExporter labels the key material of the TLS connection that a proof is
// bound to (RFC 5705, RFC 8446 section 7.5), 32 bytes without context: a check-in
// that was overheard or passed on proves nothing on another connection.
const BootExporter = "EXPORTER-muster-boot"

// BootProofText is what is signed: a label, the connection's key material, and
// the SHA-256 of the hello's bytes.
func BootProofText(exported []byte, body [32]byte) []byte {
	b := append([]byte("muster boot 1\x00"), exported...)
	return append(b, body[:]...)
}

// BootCheckIn is what the first program of a machine says: at first, while it
// waits, when something failed, and when a task is done. The answer is a
// BootReply.
type BootCheckIn struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	// Boot is the number of this boot, from the kernel's command line. It is no
	// secret.
	Boot string `json:"boot"`
	// Key is an Ed25519 public key made at the start of this program. A task is
	// bound to it: who asks again proves that it is the same program.
	Key []byte `json:"key"`
	// MAC is that of the NIC which has the address and carries this; MACs are
	// those of all NICs. In lower case with colons.
	MAC  string   `json:"mac"`
	MACs []string `json:"macs"`
	// Address was leased to MAC.
	Address netip.Addr `json:"address"`
	// Serial and UUID are the machine's own, from SMBIOS; "" where it has none.
	Serial string `json:"serial,omitempty"`
	UUID   string `json:"uuid,omitempty"`
	// Facts come with the first hello, and with Done of a discovery.
	Facts *muster.Facts `json:"facts,omitempty"`
	// TPM is the machine's, if it has one.
	TPM *BootTPM `json:"tpm,omitempty"`
	// State is the stage that it is in.
	State string `json:"state,omitempty"`
	// Stages are those behind it.
	Stages []BootStage `json:"stages,omitempty"`
	// Attempt is that of the task that it has; 0: it has none.
	Attempt int64 `json:"attempt,omitempty"`
	// Progress is how far a long task is, in one line for people.
	Progress string `json:"progress,omitempty"`
	// Failure is why it does not go on; nil while it does.
	Failure *BootFailure `json:"failure,omitempty"`
	// Done is what became of a task that is not boot.
	Done *BootTaskResult `json:"done,omitempty"`
}

// BootStage is a named moment of a boot by the clock that starts with the
// kernel: the wall clock of a machine that starts is not to be trusted.
type BootStage struct {
	Name  string          `json:"name"`
	After muster.Duration `json:"after_seconds"` // since the kernel's clock began
}

// BootTPM is what a machine shows of its TPM, and its answer to a challenge.
type BootTPM struct {
	// Endorsement is the public area of the endorsement key (TPM2B_PUBLIC).
	Endorsement []byte `json:"endorsement"`
	// Attestation is that of the key for which credentials are made: restricted,
	// fixed to this TPM, made for this boot.
	Attestation []byte `json:"attestation"`
	// Answer is what a BootChallenge held; only the TPM with the endorsement key
	// can tell.
	Answer []byte `json:"answer,omitempty"`
}

// BootFailure is why a machine does not go on.
type BootFailure struct {
	Stage string `json:"stage"` // that failed
	// Code is "network", "memory", "digest", "image", "task", "work" or
	// "internal"; docs/internals/nodeboot.md says what each means.
	Code string `json:"code"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
	// Final: trying the same task again is of no use.
	Final bool `json:"final,omitempty"`
}

// BootTaskResult is what became of a task to discover, test or clean.
type BootTaskResult struct {
	Kind   BootKind           `json:"kind"`
	Passed bool               `json:"passed"`
	Took   muster.Duration    `json:"took_seconds"`
	Steps  []muster.CleanStep `json:"steps,omitempty"`
}

// BootKind is what a machine is to do.
type BootKind string

// Kinds of tasks.
const (
	BootImage    BootKind = "boot"     // become a node
	BootDiscover BootKind = "discover" // say what it is, then off
	BootTest     BootKind = "test"     // try its parts, then off
	BootClean    BootKind = "clean"    // erase its disks, then off
	BootOff      BootKind = "off"      // off at once
)
