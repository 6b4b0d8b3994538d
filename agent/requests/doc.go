// Package requests answers what operators ask of one node: it accepts ensure
// requests, also those that waited in the stream, executes each once, and reads
// the state of single resources. Accepted requests survive a restart.
package requests
