// Package connect connects to NATS from options, files, or a context of the nats CLI.
package connect
