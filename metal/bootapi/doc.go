// Package bootapi answers machines that boot. A machine's first program says who
// it is (wire.BootCheckIn); the boot server compares that with what is known of the boot,
// has the machine's TPM answer where one is enrolled, and hands out the order,
// which holds secrets: once for an attempt, to one program.
//
// The boot server keeps nothing but challenges that are not answered yet. What is known
// of boots is behind [Book], which the site's store implements.
package bootapi
