package accel

// Program is QEMU for the machines that there are.
const Program = "qemu-system-x86_64"

// Name is what executes, as QEMU calls it.
func Name(kvm bool) string {
	if kvm {
		return "kvm"
	}
	return "tcg,thread=multi"
}

// Processor is the model that a machine has. With KVM it is the host's. Translated, it is
// what Debian's images run on; nothing newer is faster. It is
// AMD's because Linux keeps the kernel's page tables apart on Intel's of that age
// (Meltdown): each system call would empty the emulated TLB. Images for x86-64-v2 find
// their SSE. It is without CMPXCHG16B: QEMU 7.2 translates it so that Linux 6.12 dies now
// and then, which was seen in 2 of 6 boots with it and in none of 8 without. It makes no
// machines of its own, so that no node loads KVM; and its kernel need not wait for randomness.
func Processor(kvm bool) string {
	if kvm {
		return "host"
	}
	return "Opteron_G3,-misalignsse,+ssse3,+sse4.1,+sse4.2,-cx16,-svm,+rdrand"
}
