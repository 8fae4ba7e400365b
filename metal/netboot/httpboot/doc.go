// Package httpboot gives machines that boot their script, kernel and initramfs by
// HTTP, and UEFI its boot loader. It lists nothing. What belongs to one boot is
// there for the machine of that boot only: for everybody else it is absent.
package httpboot
