package network

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// OwnThread starts f on a thread that ends with f, so that it may change what
// the threads of a process otherwise share; it does not wait for f. The process's first thread cannot
// end and is what /proc/self shows, so it is never the one.
func OwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f() // not unlocked: the thread ends here
			return
		}
		// While this goroutine holds the first thread another cannot get it.
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(locked)
			f()
		}()
		<-locked
		runtime.UnlockOSThread()
	}()
}
