# The machine of these tests: what a boot loader starts of it, in real mode, at 0x240 of its kernel's file.
# It asks for its task twice, prints what comes, and does what its last byte says: o off, r reset, d read and write
# the first disk, f flood both ports, c count
# for ever and print each line that comes by the channel. guest.bin is made by
#   as --32 guest.s -o guest.o && ld -m elf_i386 -Ttext 0x240 --oformat binary -o guest.bin guest.o
.code16
.text
.globl _start
_start:
 cld
 mov $first,%si
 call ask
 mov $again,%si
 call ask
 mov variant,%al
 cmp $'o',%al
 jne 1f
 mov $0x604,%dx
 mov $0x2000,%ax
 out %ax,%dx
1: cmp $'r',%al
 jne 2f
 mov $0xcf9,%dx
 mov $6,%al
 out %al,%dx
2: cmp $'d',%al
 jne 3f
 push %ds
 pop %es
 mov $0x0201,%ax
 mov $1,%cx
 mov $0x80,%dx
 mov $0x600,%bx
 int $0x13
 mov $disk,%si
 call say
 mov $0x600,%si
 call say
 mov $0x0301,%ax
 mov $1,%cx
 mov $0x80,%dx
 mov $0x600,%bx
 int $0x13
 mov $no,%si
 jc 4f
 mov $yes,%si
4: call say
3: cmpb $'f',variant
 jne 5f
 mov $60000,%cx
6: mov $0x3f8,%dx
 mov $'x',%al
 out %al,%dx
 mov $0x2f8,%dx
 mov $'t',%al
 out %al,%dx
 loop 6b
 mov $flooded,%si
 call say
5: mov $here,%si
 call say
 cmpb $'c',variant
 jne 7f
10: mov $0x2fd,%dx
 in %dx,%al
 test $1,%al
 jnz 11f
 decw pause
 jnz 10b
 movw $0x2000,pause
 incw count
 mov $counted,%si
 call say
 mov count,%bx
 mov $4,%cx
12: rol $4,%bx
 mov %bl,%al
 and $15,%al
 add $'A',%al
 mov $0x3f8,%dx
 call emit
 loop 12b
 mov $line,%si
 call say
 jmp 10b
11: mov $heard,%si
 call say
13: mov $0x2fd,%dx
 in %dx,%al
 test $1,%al
 jz 13b
 mov $0x2f8,%dx
 in %dx,%al
 mov $0x3f8,%dx
 call emit
 cmp $10,%al
 jne 13b
 jmp 10b
7: sti
 hlt
 jmp 7b
ask: call say
 mov $task,%si
 mov $0x2f8,%dx
 call put
8: mov $0x2fd,%dx
 in %dx,%al
 test $1,%al
 jz 8b
 mov $0x2f8,%dx
 in %dx,%al
 mov $0x3f8,%dx
 call emit
 cmp $10,%al
 jne 8b
 ret
say: mov $0x3f8,%dx
put: lodsb
 test %al,%al
 jz 9f
 call emit
 jmp put
9: ret
# emit waits until the port has room: what comes sooner would be lost when the host is busy.
emit: push %ax
 add $5,%dx
14: in %dx,%al
 test $0x20,%al
 jz 14b
 sub $5,%dx
 pop %ax
 out %al,%dx
 ret
first: .asciz "\nfirst: "
again: .asciz "again: "
task: .asciz "task\n"
disk: .asciz "disk: "
no: .asciz "\nwritten: no\n"
yes: .asciz "\nwritten: yes\n"
flooded: .asciz "\nflooded\n"
here: .asciz "\nhere\n"
counted: .asciz "count: "
heard: .asciz "heard: "
line: .asciz "\n"
pause: .word 0x2000
count: .word 0
variant: .byte ' '
