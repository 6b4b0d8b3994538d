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
// idle agents. It ends by itself where its file cannot be read: so the name of that gets another
// first byte, and not another length, which the timer could read in between.
func stopServerTimer() {
	if procStatFile != "" {
		procStatFile = "!" + procStatFile[1:]
	}
}
