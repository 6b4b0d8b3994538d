//go:build !race

package main

import (
	_ "unsafe" // for the name of a variable of another package

	_ "github.com/nats-io/nats-server/v2/server/pse"
)

//go:linkname procStatFile github.com/nats-io/nats-server/v2/server/pse.procStatFile
var procStatFile string

// stopServerTimer ends the timer with which nats-server reads each second how busy its process is.
// jsm.go imports the server, so the timer begins in every process that has a client of it, and woke
// idle agents. It ends by itself where its file cannot be read: so the name of that gets a first byte
// that no name has. Its length stays, because nothing keeps the timer from reading it in between.
func stopServerTimer() {
	if procStatFile != "" {
		procStatFile = "\x00" + procStatFile[1:]
	}
}
