package initramfs

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
)

// fakeModule is an ELF file with nothing but what a module says of itself.
func fakeModule(fields ...string) []byte {
	info := strings.Join(fields, "\x00") + "\x00"
	names := "\x00.modinfo\x00.shstrtab\x00"
	var b bytes.Buffer
	const head = 64
	h := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Type: 1, Machine: 62, Version: 1,
		Shoff: uint64(head + len(info) + len(names)), Ehsize: head, Shentsize: 64, Shnum: 3, Shstrndx: 2,
	}
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) }
	put(h)
	b.WriteString(info + names)
	put(elf.Section64{})
	put(elf.Section64{Name: 1, Type: 1, Off: head, Size: uint64(len(info)), Addralign: 1})
	put(elf.Section64{Name: 10, Type: 3, Off: uint64(head + len(info)), Size: uint64(len(names)), Addralign: 1})
	return b.Bytes()
}
