package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// inputPoll is how often, in milliseconds, the wait for input looks for an interrupt.
const inputPoll = 100

// input is standard input that ends with errInterrupted when muster is to end,
// also while it waits for more.
type input struct {
	file        *os.File
	interrupted <-chan struct{}
}

// newInput makes input of a file; any other reader has no wait to be ended.
func newInput(r io.Reader, interrupted <-chan struct{}) io.Reader {
	if file, ok := r.(*os.File); ok {
		return &input{file: file, interrupted: interrupted}
	}

	return r
}

// Read reads what is there, or waits for it.
func (i *input) Read(b []byte) (int, error) {
	for {
		select {
		case <-i.interrupted:
			return 0, errInterrupted
		default:
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(i.file.Fd()), Events: unix.POLLIN}}, inputPoll)
		switch {
		case err != nil && err != unix.EINTR:
			return 0, os.NewSyscallError("poll", err)
		case ready > 0:
			return i.file.Read(b)
		}
	}
}
